// GrowingPause: how long to wait before something is tried or asked again: twice as long each time,
// up to a bound.
//
// Threads: a value.
#pragma once

#include <algorithm>
#include <chrono>

namespace tamis {

class GrowingPause {
 public:
  using Duration = std::chrono::nanoseconds;

  constexpr GrowingPause(Duration first, Duration longest) : first_(first), longest_(longest) {}

  Duration Next() { return At(tries_++); }
  void Reset() { tries_ = 0; }
  int tries() const { return tries_; }

  // The pause after so many others.
  constexpr Duration At(int tries) const {
    Duration pause = first_;
    for (int i = 0; i < tries && pause < longest_; ++i) pause *= 2;
    return std::min(pause, longest_);
  }

 private:
  Duration first_;
  Duration longest_;
  int tries_ = 0;
};

}  // namespace tamis
