// The hashes of keys as key files and filters take them: 48 bits are kept, in ascending order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tamis::lsm {

inline constexpr uint32_t kDroppedBits = 16;  // the lowest ones, which are 0
inline constexpr uint64_t kKeptBits = ~((uint64_t{1} << kDroppedBits) - 1);

// By the bits that are kept; a radix sort where it pays.
void SortHashes(std::vector<uint64_t>* hashes);
void SortDistinctHashes(std::vector<uint64_t>* hashes);

// The elements of one sorted multiset that the other lacks, counting copies.
struct HashDifference {
  std::vector<uint64_t> added;    // in `after` only
  std::vector<uint64_t> removed;  // in `before` only
};
HashDifference DifferenceOf(std::span<const uint64_t> before, std::span<const uint64_t> after);

}  // namespace tamis::lsm
