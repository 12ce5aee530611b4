// LimitedAddressSpace: for tests. While one lives, the process can take only so many bytes more of
// address space than it had: larger allocations and further threads fail. The sanitizers need the
// address space, so such tests are to be skipped with them.
//
// Threads: one lives at a time.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace tamis {

class LimitedAddressSpace {
 public:
  explicit LimitedAddressSpace(size_t more_bytes) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    if (pages == 0 || getrlimit(RLIMIT_AS, &old_) != 0) return;
    rlimit small = old_;
    small.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more_bytes;
    is_set_ = setrlimit(RLIMIT_AS, &small) == 0;
  }
  ~LimitedAddressSpace() {
    if (is_set_) setrlimit(RLIMIT_AS, &old_);
  }
  LimitedAddressSpace(const LimitedAddressSpace&) = delete;
  LimitedAddressSpace& operator=(const LimitedAddressSpace&) = delete;

  // False: the system refuses the limit, so nothing is limited.
  bool is_set() const { return is_set_; }

 private:
  rlimit old_{};
  bool is_set_ = false;
};

}  // namespace tamis
