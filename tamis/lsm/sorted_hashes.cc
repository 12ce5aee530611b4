#include "tamis/lsm/sorted_hashes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tamis::lsm {
namespace {

// Hashes that were read from a few key files, one after the other, are merged in fewer passes than
// a radix sort takes. Returns false, and changes nothing, when there are more ascending runs.
bool MergeRuns(std::vector<uint64_t>* hashes) {
  constexpr size_t kRuns = 16;
  std::vector<size_t> begins = {0};
  for (size_t i = 1; i < hashes->size(); ++i) {
    if ((*hashes)[i] >= (*hashes)[i - 1]) continue;
    if (begins.size() == kRuns) return false;
    begins.push_back(i);
  }
  begins.push_back(hashes->size());
  const auto at = [&](size_t i) {
    return hashes->begin() + static_cast<std::ptrdiff_t>(begins[i]);
  };
  while (begins.size() > 2) {
    size_t least = 0;  // the neighbours that are fewest together
    for (size_t i = 1; i + 2 < begins.size(); ++i) {
      if (begins[i + 2] - begins[i] < begins[least + 2] - begins[least]) least = i;
    }
    std::inplace_merge(at(least), at(least + 1), at(least + 2));
    begins.erase(begins.begin() + static_cast<std::ptrdiff_t>(least + 1));
  }
  return true;
}

}  // namespace

void SortHashes(std::vector<uint64_t>* hashes) {
  if (MergeRuns(hashes)) return;
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
