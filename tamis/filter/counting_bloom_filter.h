// A counting Bloom filter: an approximate multiset of 64-bit hashes with erasure, the textbook's.
//
// Choose it to compare with; BlockedSplitCountingBloomFilter does the same in one cache line, and
// CuckooFilter in a third of the memory (docs/FILTERS.md#choosing).
//
//   Layout      M 4-bit counters                              (docs/FORMATS.md#counting-bloom)
//   Memory      4 x 1.44 log2(1/p) bits per key               p = 1 %: 38.4 bits/key
//   FP rate     (1 - e^(-kn/M))^k
//   MayContain  k random cache lines, fewer for most absent keys
//   Insert      k lines, never refuses
//   Erase       k lines. REQUIRES: the hash was inserted more often than erased
//   Overflow    a counter that reaches 15 sticks (saturated_count())
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Fan, Cao, Almeida and Broder, ToN 2000
//               Differs: counters stick; positions as in BloomFilter
#pragma once

#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/bloom_positions.h"
#include "tamis/filter/internal/counter_array.h"

namespace tamis {

class CountingBloomFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kCountingBloom;

  static Result<CountingBloomFilter> Create(const Options& options);

  bool Insert(uint64_t hash);  // always true
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const;
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  // Adds counter by counter. kInvalidArgument unless both have the same options.
  Status Merge(const CountingBloomFilter& other);
  void Clear();

  size_t SizeBytes() const { return counters_.words().size_bytes(); }
  uint64_t Count() const { return count_; }  // inserted and not erased
  double Fill() const;                       // share of counters above 0
  double ExpectedFpr() const;                // from the fill as it is
  uint64_t seed() const { return seed_; }
  uint64_t positions() const { return counters_.size(); }
  // At a position: how often it was raised, 15 for as often or more.
  uint32_t Counter(uint64_t position) const { return counters_.Get(position); }
  uint64_t saturated_count() const { return counters_.saturated(); }
  uint64_t ignored_decrements() const { return ignored_decrements_; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<CountingBloomFilter> Deserialize(std::string_view bytes,
                                                 OpenMode mode = OpenMode::kCopy);

 private:
  CountingBloomFilter(uint64_t seed, BloomPositions positions, CounterArray counters)
      : seed_(seed), positions_(positions), counters_(std::move(counters)) {}

  uint64_t seed_;
  uint64_t count_ = 0;
  uint64_t ignored_decrements_ = 0;
  BloomPositions positions_;
  CounterArray counters_;
};

}  // namespace tamis
