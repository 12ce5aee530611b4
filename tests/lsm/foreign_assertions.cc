#include "tests/lsm/foreign_assertions.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tamis::lsm {
namespace {

std::atomic<bool> has_fault{false};

// By the library that calls, not by the name of a file: an assertion in a header of RocksDB that is
// compiled into us is ours.
bool IsOfRocksDb(const void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("librocksdb");
}

}  // namespace

void NoteFault() { has_fault.store(true, std::memory_order_relaxed); }

}  // namespace tamis::lsm

extern "C" [[noreturn]] void __assert_fail(  // NOLINT(bugprone-reserved-identifier)
    const char* assertion, const char* file, unsigned line, const char* function) noexcept {
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
  if (tamis::lsm::has_fault.load(std::memory_order_relaxed) &&
      tamis::lsm::IsOfRocksDb(__builtin_return_address(0))) {
    _exit(tamis::lsm::kForeignAssertion);
  }
  std::abort();
}
