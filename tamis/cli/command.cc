#include "tamis/cli/command.h"

#include <cstdio>

namespace tamis {

int Report(const Status& status) {
  if (status.ok()) return kExitOk;
  std::fflush(stdout);
  std::fprintf(stderr, "tamis: %s\n", status.message().c_str());
  return status.code() == StatusCode::kCancelled ? kExitInterrupted : kExitFailure;
}

}  // namespace tamis
