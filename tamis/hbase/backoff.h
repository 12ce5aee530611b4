// The pause before the next try: it doubles up to one second, with jitter, so that two clients that
// failed together do not retry together.
#pragma once

#include <chrono>

#include "tamis/base/growing_pause.h"
#include "tamis/base/random.h"

namespace tamis::hbase {

class Backoff {
 public:
  static constexpr std::chrono::microseconds kFirst{10'000};
  static constexpr std::chrono::microseconds kLongest{1'000'000};

  // Returns between 3/4 and all of 10 ms, 20 ms, 40 ms, ... 1 s.
  std::chrono::microseconds Next(Random& random) { return At(tries_++, random); }
  int tries() const { return tries_; }

  static std::chrono::microseconds At(int tries, Random& random) {
    const auto full = std::chrono::duration_cast<std::chrono::microseconds>(
        GrowingPause(kFirst, kLongest).At(tries));
    return full - std::chrono::microseconds(random.Uniform(full.count() / 4));
  }

 private:
  int tries_ = 0;
};

}  // namespace tamis::hbase
