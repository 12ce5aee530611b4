// Counter blocks: one cache line of 4-bit counters, as 8 lanes of 16. A hash has one counter in
// every lane, so a block is read, raised or lowered by a few vector instructions without a branch.
//
// In lane l the counter is the top 4 bits of low32 * kLaneSalts[l].
#pragma once

#include <cstdint>

#include "tamis/filter/split_block.h"

namespace tamis {

inline constexpr uint32_t kCounterBlockWords = 8;

// What raising or lowering a block did, in counters.
struct CounterChange {
  uint32_t zeros = 0;   // that left 0, or returned to it
  uint32_t sticky = 0;  // that began to stick, or were left as they are since they stick
};

// Chosen for this processor.
struct CounterBlockFunctions {
  bool (*test)(const uint64_t* block, uint32_t low);
  CounterChange (*raise)(uint64_t* block, uint32_t low);
  // REQUIRES: test() is true.
  CounterChange (*lower)(uint64_t* block, uint32_t low);

  static CounterBlockFunctions ForThisProcessor();
};

// The shift of a lane's counter in its word, one at a time: what the vectors do for all lanes.
inline uint32_t CounterBlockShift(uint32_t low, uint32_t lane) {
  return low * kLaneSalts[lane] >> 28 << 2;
}

}  // namespace tamis
