// Backoff: the pauses between attempts: each twice as long as the one before, up to a bound.
//
//   Backoff backoff(milliseconds(10), seconds(1));
//   while (!Try()) Sleep(backoff.Next(random));
//
// Threads: a value.
#pragma once

#include <algorithm>
#include <chrono>

#include "tamis/base/random.h"

namespace tamis {

class Backoff {
 public:
  using Duration = std::chrono::nanoseconds;

  // REQUIRES: 0 < first.
  constexpr Backoff(Duration first, Duration longest) : first_(first), longest_(longest) {}
  // The first attempt follows without a pause.
  static constexpr Backoff AfterARetry(Duration first, Duration longest) {
    Backoff backoff(first, longest);
    backoff.free_ = 1;
    return backoff;
  }

  constexpr Duration first() const { return first_; }
  constexpr Duration longest() const { return longest_; }

  Duration Next() { return At(tries_++); }
  // With jitter: between 3/4 of the pause and all of it, so that clients that failed together do
  // not come back together.
  Duration Next(Random& random) { return At(tries_++, random); }
  void Reset() { tries_ = 0; }
  int tries() const { return tries_; }

  // The pause that follows `tries` earlier ones.
  constexpr Duration At(int tries) const {
    if (tries < free_) return Duration(0);
    Duration pause = first_;
    for (int i = free_; i < tries && pause < longest_; ++i) pause *= 2;
    return std::min(pause, longest_);
  }
  Duration At(int tries, Random& random) const {
    const Duration full = At(tries);
    return full - Duration(random.Uniform(static_cast<uint64_t>(full.count()) / 4));
  }

 private:
  Duration first_;
  Duration longest_;
  int free_ = 0;
  int tries_ = 0;
};

}  // namespace tamis
