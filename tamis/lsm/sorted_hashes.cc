#include "tamis/lsm/sorted_hashes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tamis::lsm {

void SortHashes(std::vector<uint64_t>* hashes) {
  constexpr size_t kFew = 1024;
  if (hashes->size() < kFew) {
    std::ranges::sort(*hashes);
    return;
  }
  // 11 bits a pass: their counters stay in the first-level cache.
  constexpr uint32_t kBits = 11;
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  std::vector<uint64_t> other(hashes->size());
  for (uint32_t shift = kDroppedBits; shift < 64; shift += kBits) {
    size_t begins[kMask + 1] = {};
    for (const uint64_t hash : *hashes) ++begins[hash >> shift & kMask];
    size_t begin = 0;
    for (size_t& count : begins) begin += std::exchange(count, begin);
    for (const uint64_t hash : *hashes) other[begins[hash >> shift & kMask]++] = hash;
    hashes->swap(other);
  }
}

void SortDistinctHashes(std::vector<uint64_t>* hashes) {
  SortHashes(hashes);
  hashes->erase(std::unique(hashes->begin(), hashes->end()), hashes->end());
}

HashDifference DifferenceOf(std::span<const uint64_t> before, std::span<const uint64_t> after) {
  HashDifference difference;
  std::ranges::set_difference(after, before, std::back_inserter(difference.added));
  std::ranges::set_difference(before, after, std::back_inserter(difference.removed));
  return difference;
}

}  // namespace tamis::lsm
