// A scalable Bloom filter: an approximate set of 64-bit hashes that grows while it keeps its rate.
//
// Choose it when keys never leave the set and their number is not known; when it is,
// BlockedBloomFilter is one layer of this (docs/FILTERS.md#choosing).
//
//   Layout      layers of blocked Bloom filters, each for twice as many keys at half the rate
//                                                             (docs/FORMATS.md#scalable-bloom)
//   Memory      the last layer's rate decides: about 2 bits/key more for every doubling of the keys
//   FP rate     p/2 + p/4 + ... < p, but no layer below 2^-30: p below 1e-6 is kept for fewer
//               doublings
//   MayContain  one cache line a layer, the newest first      Insert  likewise, never refuses
//   Erase       none
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Almeida, Baquero, Preguica and Hutchison, IPL 2007 (s = 2, r = 1/2)
//               Differs: layers are blocked; a key that a layer contains already is not set again
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tamis/filter/blocked_bloom_filter.h"

namespace tamis {

class ScalableBloomFilter {
 public:
  using Options = FilterOptions;  // the capacity is the first layer's
  static constexpr FilterKind kKind = FilterKind::kScalableBloom;

  static Result<ScalableBloomFilter> Create(const Options& options);

  bool Insert(uint64_t hash);  // always true
  bool MayContain(uint64_t hash) const;
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  // Takes the other's layers in beside its own. kInvalidArgument unless both have the same options.
  Status Merge(const ScalableBloomFilter& other);
  void Clear();

  size_t SizeBytes() const;
  uint64_t Count() const { return count_; }  // keys inserted, repeated ones too
  double Fill() const;                       // share of bits set; reads all of them
  double ExpectedFpr() const;                // from the blocks as they are; reads all of them
  uint64_t seed() const { return options_.seed; }
  size_t layers() const { return layers_.size(); }

  // For the first layer.
  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<ScalableBloomFilter> Deserialize(std::string_view bytes,
                                                 OpenMode mode = OpenMode::kCopy);

 private:
  explicit ScalableBloomFilter(const Options& options) : options_(options) {}

  // The layer that keys are inserted into is the last one.
  void AddLayer(uint32_t doublings);
  static double LayerFpr(double fpr, uint32_t doublings);

  Options options_;
  uint32_t doublings_ = 0;  // doublings of the last layer's capacity
  uint64_t count_ = 0;
  std::vector<BlockedBloomFilter> layers_;
};

}  // namespace tamis
