// A Bloom filter of a given number of bits and hashes, as publications name them, of the options
// that our filters take: those of the keys that would fill half of it.
#pragma once

#include <cmath>
#include <numbers>

#include "tamis/filter/filter_options.h"

namespace tamis {

// The bits come out right to k of them. REQUIRES: hashes from 1 to 30.
inline FilterOptions BloomOptionsFor(double bits, double hashes) {
  return {.capacity = static_cast<uint64_t>(bits * std::numbers::ln2 / hashes),
          .fpr = std::exp2(-hashes)};
}

}  // namespace tamis
