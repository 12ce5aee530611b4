// A split counting Bloom filter: an approximate multiset of 64-bit hashes with exact erasure.
//
// Choose it when identical filters of many places are kept and only their bits are wanted
// elsewhere: Projection() is what a FilterMatrix stores (docs/FILTERS.md#choosing).
//
//   Layout      k slices x m 4-bit counters                   (docs/FORMATS.md#split-counting)
//   Memory      4 k / ln 2 bits per key                       p = 0.1 %: 57.7 bits/key
//   FP rate     (1 - (1 - 1/m)^n)^k; 2^-k at capacity, where every slice is half full
//   MayContain  k lines, two for most absent keys             Insert  k lines, never refuses
//   Erase       k lines. REQUIRES: the hash was inserted more often than erased
//   Overflow    a counter that reaches 15 sticks: erase leaves it (saturated_count()); at capacity
//               that happens to one counter in 10^15 by chance, and to every value inserted 15
//               times
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Huang, Fang, Zhang: Split Counting Bloom Filter and its Application in
//               Hbase Secondary Index, 2015
//               Differs: counters stick instead of wrapping round; every slice mixes the hash again
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/counter_array.h"
#include "tamis/filter/split_geometry.h"

namespace tamis {

class SplitCountingBloomFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kSplitCountingBloom;

  static Result<SplitCountingBloomFilter> Create(const Options& options);
  // REQUIRES: geometry.IsValid().
  explicit SplitCountingBloomFilter(SplitGeometry geometry, uint64_t seed = 0);

  // Calls on_flip(position, true) for each counter that leaves 0. Always true.
  template <class OnFlip>
  bool Insert(uint64_t hash, OnFlip&& on_flip) {
    for (uint32_t s = 0; s < geometry_.slices; ++s) {
      const uint64_t position = geometry_.Position(hash, s);
      if (counters_.Increment(position)) on_flip(position, true);
    }
    ++count_;
    return true;
  }
  bool Insert(uint64_t hash) {
    return Insert(hash, [](uint64_t, bool) {});
  }

  // False, and nothing is changed, when the filter does not contain the hash. Calls
  // on_flip(position, false) for each counter that returns to 0.
  template <class OnFlip>
  bool Erase(uint64_t hash, OnFlip&& on_flip) {
    if (!MayContain(hash)) return false;
    for (uint32_t s = 0; s < geometry_.slices; ++s) {
      const uint64_t position = geometry_.Position(hash, s);
      switch (counters_.Decrement(position)) {
        case CounterArray::Lowering::kLowered:
          break;
        case CounterArray::Lowering::kCleared:
          on_flip(position, false);
          break;
        case CounterArray::Lowering::kSticky:
          ++ignored_decrements_;
          break;
      }
    }
    count_ -= count_ > 0;
    return true;
  }
  bool Erase(uint64_t hash) {
    return Erase(hash, [](uint64_t, bool) {});
  }

  bool MayContain(uint64_t hash) const {
    for (uint32_t s = 0; s < geometry_.slices; ++s) {
      if (counters_.Get(geometry_.Position(hash, s)) == 0) return false;
    }
    return true;
  }
  Bitmap MayContain(std::span<const uint64_t> hashes) const;
  void Prefetch(uint64_t hash) const;

  // Adds counter by counter. kInvalidArgument unless geometry and seed are the same.
  Status Merge(const SplitCountingBloomFilter& other);
  void Clear();

  // Bit p % 64 of word p / 64 is set when the counter at position p is above 0.
  std::vector<uint64_t> Projection() const;

  size_t SizeBytes() const { return counters_.words().size_bytes(); }
  uint64_t Count() const { return count_; }  // inserted and not erased
  double Fill() const;                       // share of counters above 0
  double ExpectedFpr() const;                // from the fill as it is
  const SplitGeometry& geometry() const { return geometry_; }
  uint64_t seed() const { return seed_; }
  uint64_t saturated_count() const { return counters_.saturated(); }
  // How often an erase met a counter that sticks; what a rebuild would clear.
  uint64_t ignored_decrements() const { return ignored_decrements_; }
  // At a position: how many keys raised it, 15 for as many or more.
  uint32_t Counter(uint64_t position) const { return counters_.Get(position); }
  // Half of all positions are in use: what the geometry was made for.
  bool IsHalfFull() const { return counters_.nonzero() * 2 >= counters_.size(); }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<SplitCountingBloomFilter> Deserialize(std::string_view bytes,
                                                      OpenMode mode = OpenMode::kCopy);

 private:
  friend class ScalableSplitCountingBloomFilter;

  SplitCountingBloomFilter(SplitGeometry geometry, uint64_t seed, CounterArray counters);

  SplitGeometry geometry_;
  uint64_t seed_ = 0;
  uint64_t count_ = 0;
  uint64_t ignored_decrements_ = 0;
  CounterArray counters_;
};

}  // namespace tamis
