#include "tamis/cli/command.h"

#include <cstdio>

#include "tamis/base/terminal_text.h"

namespace tamis {

int Report(const Status& status) {
  if (status.ok()) return kExitOk;
  std::fflush(stdout);
  std::fprintf(stderr, "tamis: %s\n", TerminalText(status.message()).c_str());
  return status.code() == StatusCode::kCancelled ? kExitInterrupted : kExitFailure;
}

}  // namespace tamis
