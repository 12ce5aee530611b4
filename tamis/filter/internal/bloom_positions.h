// BloomPositions: where a hash falls in a plain or counting Bloom filter.
//
// The k positions are the high bits of a multiplicative generator started from the mixed hash. With
// h1 + i h2, the usual choice, the positions of a key with a small h2 lie next to each other or
// coincide, which shows in small filters.
#pragma once

#include <cstdint>

#include "tamis/base/hash.h"

namespace tamis {

struct BloomPositions {
  static constexpr uint32_t kMaxHashes = 64;

  uint64_t positions = 1;
  uint32_t hashes = 1;

  // Calls visit(position) for each until it returns false; true when it never did. A position may
  // come twice.
  template <class Visit>
  bool ForEach(uint64_t hash, Visit&& visit) const {
    uint64_t state = Mix(hash);
    for (uint32_t i = 0; i < hashes; ++i) {
      if (!visit(FastRange(state, positions))) return false;
      // A multiplier whose generator passes the spectral test (Steele and Vigna 2021).
      state *= 0xf1357aea2e62a9c5u;
    }
    return true;
  }

  // The smallest that keeps the rate at capacity: a whole number of hashes needs a little more than
  // the formula's positions.
  static BloomPositions For(double fpr, uint64_t capacity);

  friend bool operator==(const BloomPositions&, const BloomPositions&) = default;
};

}  // namespace tamis
