// A small, fast, seeded generator (xoshiro256**, Blackman and Vigna 2018): the same seed gives the
// same numbers on every machine, which the distributions of <random> do not promise.
#pragma once

#include <cstdint>
#include <limits>

#include "tamis/base/hash.h"

namespace tamis {

class Random {
 public:
  using result_type = uint64_t;

  explicit Random(uint64_t seed) {
    for (auto& word : state_) word = Mix(seed += 0x9e3779b97f4a7c15u);
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<uint64_t>::max(); }

  uint64_t operator()() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, n); 0 when n is 0.
  uint64_t Uniform(uint64_t n) { return FastRange((*this)(), n); }

  // Uniform in [0, 1).
  double UniformDouble() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  bool OneIn(uint64_t n) { return Uniform(n) == 0; }

 private:
  static constexpr uint64_t Rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  uint64_t state_[4];
};

// A seed drawn from the operating system, for uses in which it must not be predictable.
uint64_t SeedFromSystem();

}  // namespace tamis
