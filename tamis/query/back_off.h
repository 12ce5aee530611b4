// BackOff: how long to wait before something that failed is tried again: not at all, then a moment,
// then twice as long each time, up to a second.
//
// Threads: a value.
#pragma once

#include <utility>

#include "tamis/base/executor.h"
#include "tamis/base/growing_pause.h"

namespace tamis {

class BackOff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(20);
  static constexpr Duration kLongest = std::chrono::seconds(1);

  // The pause after one more failure.
  Duration Next() { return std::exchange(failed_, true) ? pauses_.Next() : Duration(0); }
  void Reset() { *this = BackOff(); }

 private:
  bool failed_ = false;
  GrowingPause pauses_{kFirst, kLongest};
};

}  // namespace tamis
