// BackOff: how long to wait before something that failed is tried again: not at all, then a moment,
// then twice as long each time, up to a second.
//
// Threads: a value.
#pragma once

#include <algorithm>

#include "tamis/base/executor.h"

namespace tamis {

class BackOff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(20);
  static constexpr Duration kLongest = std::chrono::seconds(1);

  // The pause after one more failure.
  Duration Next() {
    const Duration pause = next_;
    next_ = next_ == Duration(0) ? kFirst : std::min(2 * next_, kLongest);
    return pause;
  }
  void Reset() { next_ = Duration(0); }

 private:
  Duration next_{0};
};

}  // namespace tamis
