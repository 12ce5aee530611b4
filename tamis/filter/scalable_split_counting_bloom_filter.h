// A scalable split counting Bloom filter: a multiset of any number of 64-bit hashes with erasure,
// made of identical layers.
//
// Choose it where the number of keys is not known and others hold its bits: what a region server
// keeps for every region and index (docs/FILTERS.md#choosing).
//
//   Layout      layers, each a split counting filter          (docs/FORMATS.md#scalable)
//   Memory      4 k / ln 2 bits per key of full layers
//   FP rate     1 - (1 - 2^-k)^d for d full layers
//   MayContain  as a split counting filter, for each layer    Insert  never refuses
//   Erase       exact when one layer matches. REQUIRES: inserted more often than erased
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Huang, Fang, Zhang: Split Counting Bloom Filter and its Application in
//               Hbase Secondary Index, 2015, section 3.4 (layers)
//               Differs: where a key goes and what an erase may touch, below
//
// A layer is open until half of its positions are in use. A key goes into the first layer that
// matches it already, else into the first open one; when none is open, a layer is added.
//
// A key lies in a layer that matches it. So when one layer alone matches, the key is there, and
// erasing is exact. When several match, it cannot be told which one has the key, and lowering the
// counters of another would lose another key: then the erase changes nothing, and stuck_count()
// grows. A rebuild from the keys clears that, and the counters that stick.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/filter/split_counting_bloom_filter.h"

namespace tamis {

enum class EraseOutcome {
  kErased,  // one layer matched and was lowered (counters that stick: ignored_decrements())
  kStuck,   // several layers matched: unchanged
  kAbsent,  // no layer matched: unchanged
};

class ScalableSplitCountingBloomFilter {
 public:
  using Options = FilterOptions;  // capacity and fpr are those of one layer
  static constexpr FilterKind kKind = FilterKind::kScalableSplitCountingBloom;

  static Result<ScalableSplitCountingBloomFilter> Create(const Options& options);
  // Begins with one layer. REQUIRES: geometry.IsValid().
  explicit ScalableSplitCountingBloomFilter(SplitGeometry geometry, uint64_t seed = 0);

  // Returns the layer that the key went to; layers() has grown when that is a new one. Calls
  // on_flip(layer, position, true) for each counter that leaves 0.
  template <class OnFlip>
  uint32_t Insert(uint64_t hash, OnFlip&& on_flip) {
    const uint32_t layer = LayerFor(hash);
    layers_[layer].Insert(hash,
                          [&](uint64_t position, bool set) { on_flip(layer, position, set); });
    return layer;
  }
  uint32_t Insert(uint64_t hash) {
    return Insert(hash, [](uint32_t, uint64_t, bool) {});
  }

  // Calls on_flip(layer, position, false) for each counter that returns to 0.
  template <class OnFlip>
  EraseOutcome Erase(uint64_t hash, OnFlip&& on_flip) {
    const std::optional<uint32_t> layer = FindLayer(hash);
    if (!layer) return EraseOutcome::kAbsent;
    if (MatchesBeyond(hash, *layer) && !erase_first_match_) {
      ++stuck_count_;
      return EraseOutcome::kStuck;
    }
    layers_[*layer].Erase(hash,
                          [&](uint64_t position, bool set) { on_flip(*layer, position, set); });
    return EraseOutcome::kErased;
  }
  EraseOutcome Erase(uint64_t hash) {
    return Erase(hash, [](uint32_t, uint64_t, bool) {});
  }

  // The first layer that matches.
  std::optional<uint32_t> FindLayer(uint64_t hash) const;
  bool MayContain(uint64_t hash) const { return FindLayer(hash).has_value(); }
  // An upper bound for how often the hash was inserted and not erased; nullopt when the counters do
  // not give one.
  std::optional<uint64_t> CountBound(uint64_t hash) const;
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  // Takes over the other's layers behind its own. kInvalidArgument unless geometry and seed are the
  // same.
  Status Merge(const ScalableSplitCountingBloomFilter& other);
  void Clear();

  uint32_t layers() const { return static_cast<uint32_t>(layers_.size()); }
  const SplitCountingBloomFilter& layer(uint32_t i) const { return layers_[i]; }
  // REQUIRES: layer < layers().
  std::vector<uint64_t> Projection(uint32_t layer) const { return layers_[layer].Projection(); }

  size_t SizeBytes() const;
  static size_t LayerBytes(SplitGeometry geometry) {  // bytes of each
    return CounterArray::WordsFor(geometry.positions()) * sizeof(uint64_t);
  }
  uint64_t Count() const;      // inserted and not erased, stuck ones included
  double Fill() const;         // share of all layers' counters above 0
  double ExpectedFpr() const;  // from the fill as it is
  const SplitGeometry& geometry() const { return geometry_; }
  uint64_t seed() const { return seed_; }
  uint64_t saturated_count() const;
  uint64_t ignored_decrements() const;
  uint64_t stuck_count() const { return stuck_count_; }

  // For all layers together: the capacity of `size_bytes` when each layer has rate `fpr`.
  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<ScalableSplitCountingBloomFilter> Deserialize(std::string_view bytes,
                                                              OpenMode mode = OpenMode::kCopy);

  // A fault for tests that want to see a key lost: erases from the first layer that matches.
  void set_erase_first_match_for_test(bool on) { erase_first_match_ = on; }

 private:
  uint32_t LayerFor(uint64_t hash);
  bool MatchesBeyond(uint64_t hash, uint32_t layer) const;

  SplitGeometry geometry_;
  uint64_t seed_ = 0;
  uint64_t stuck_count_ = 0;
  bool erase_first_match_ = false;
  std::vector<SplitCountingBloomFilter> layers_;
};

}  // namespace tamis
