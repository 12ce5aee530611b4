// Counter blocks: one cache line of 4-bit counters, as 8 lanes of 16. A hash has one counter in
// every lane, so a block is read, raised or lowered by a few vector instructions without a branch.
//
// In lane l the counter is the top 4 bits of low32 * kLaneSalts[l].
#pragma once

#include <cstdint>
#include <span>

#include "tamis/filter/internal/split_block.h"

namespace tamis {

inline constexpr uint32_t kCounterBlockWords = 8;

// The effect of raising or lowering blocks, in counters.
struct CounterChange {
  uint64_t zeros = 0;   // that left 0, or returned to it
  uint64_t sticky = 0;  // that began to stick, or were left as they are since they stick
};

// Chosen for this processor.
struct CounterBlockFunctions {
  bool (*test)(const uint64_t* block, uint32_t low);
  // Both add their effect to the change. Lowering a block that test() says no to does nothing, and
  // is false.
  void (*raise)(uint64_t* block, uint32_t low, CounterChange* change);
  bool (*lower)(uint64_t* block, uint32_t low, CounterChange* change);

  // The same for many hashes; the blocks of later ones are fetched while earlier ones are worked
  // on. Bit i of the answers, which must be 0 before, is that of hashes[i].
  void (*test_many)(const uint64_t* words, uint64_t blocks, std::span<const uint64_t> hashes,
                    uint64_t* answers);
  CounterChange (*raise_many)(uint64_t* words, uint64_t blocks, std::span<const uint64_t> hashes);
  CounterChange (*lower_many)(uint64_t* words, uint64_t blocks, std::span<const uint64_t> hashes,
                              uint64_t* answers);

  static CounterBlockFunctions ForThisProcessor();
};

// The shift of a lane's counter in its word, one at a time: what the vectors do for all lanes.
inline uint32_t CounterBlockShift(uint32_t low, uint32_t lane) {
  return low * kLaneSalts[lane] >> 28 << 2;
}

}  // namespace tamis
