// Measurement: a figure that our filters gave, and how far chance may have moved it.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "tamis/base/hash.h"

namespace tamis {

struct Measurement {
  double value = 0;
  // 95 of 100 such intervals hold what is measured. Both 0: the value is exact.
  double low = 0;
  double high = 0;
  uint64_t trials = 0;  // 0 = counted, not drawn

  bool exact() const { return low == 0 && high == 0; }
};

Measurement Exactly(double value);
// hits of trials, with Wilson's interval, which holds for few hits and for none.
Measurement Share(uint64_t hits, uint64_t trials);
// REQUIRES: two values or more.
Measurement Mean(std::span<const double> values);

// Hashes of keys that never repeat: any two of one object differ while stream < 2^24, i < 2^40.
class Keys {
 public:
  explicit Keys(uint64_t seed) : offset_(Mix(seed)) {}

  uint64_t operator()(uint64_t stream, uint64_t i) const {
    return Mix(offset_ + (stream << 40) + i);
  }

 private:
  uint64_t offset_;
};

// Inserts keys 0 .. n - 1 of the stream; how many the filter took.
template <class Filter>
uint64_t InsertKeys(Filter* filter, const Keys& keys, uint64_t stream, uint64_t n) {
  uint64_t i = 0;
  while (i < n && static_cast<bool>(filter->Insert(keys(stream, i)))) ++i;
  return i;
}

// How many of keys 0 .. n - 1 of the stream may be in the filter.
template <class Filter>
uint64_t CountKeys(const Filter& filter, const Keys& keys, uint64_t stream, uint64_t n) {
  std::vector<uint64_t> hashes;
  uint64_t hits = 0;
  for (uint64_t begin = 0; begin < n; begin += hashes.size()) {
    hashes.resize(n - begin < 4096 ? n - begin : 4096);
    for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = keys(stream, begin + i);
    for (const uint64_t word : filter.MayContain(std::span<const uint64_t>(hashes))) {
      hits += std::popcount(word);
    }
  }
  return hits;
}

// The false-positive rate, asked of keys of a stream that was not inserted.
template <class Filter>
Measurement FalsePositives(const Filter& filter, const Keys& keys, uint64_t stream, uint64_t n) {
  return Share(CountKeys(filter, keys, stream, n), n);
}

}  // namespace tamis
