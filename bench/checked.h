// Check and Get: a benchmark ends at the first error, which it names.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "tamis/base/status.h"

namespace tamis {

// Writes the message behind the name of the program.
[[noreturn]] inline void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}

inline void Check(const Status& status) {
  if (!status.ok()) Die(status.ToString());
}

template <class T>
T Get(Result<T> result) {
  Check(result.status());
  return std::move(*result);
}

}  // namespace tamis
