// A Bloom filter: an approximate set of 64-bit hashes, the textbook's.
//
// Choose it when memory counts more than time and keys never leave the set; a blocked filter costs
// a tenth more memory and a fifth of the time (docs/FILTERS.md#choosing).
//
//   Layout      M bits                                        (docs/FORMATS.md#bloom)
//   Memory      1.44 log2(1/p) bits per key                   p = 1 %: 9.6 bits/key
//   FP rate     (1 - e^(-kn/M))^k
//   MayContain  k random cache lines, fewer for most absent keys
//   Insert      k lines, never refuses
//   Erase       none
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Bloom, CACM 1970
//               Differs: the k positions are the high bits of a multiplicative generator started
//               from the hash, not h1 + i h2, whose positions coincide for whole arithmetic
//               progressions: 15 % more false positives in filters of 479 bits
//               (bloom_filter_test.cc)
#pragma once

#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/bloom_positions.h"
#include "tamis/filter/internal/word_array.h"

namespace tamis {

class BloomFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kBloom;

  static Result<BloomFilter> Create(const Options& options);

  bool Insert(uint64_t hash);  // always true
  bool MayContain(uint64_t hash) const;
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  // Afterwards this holds the keys of both. kInvalidArgument unless both have the same options.
  Status Merge(const BloomFilter& other);
  void Clear();

  size_t SizeBytes() const { return words_.size_bytes(); }
  uint64_t Count() const { return count_; }  // keys inserted, repeated ones too
  double Fill() const;                       // share of bits set; reads all of them
  double ExpectedFpr() const;                // from the fill as it is
  uint64_t seed() const { return seed_; }
  uint64_t bits() const { return positions_.positions; }
  uint32_t hashes() const { return positions_.hashes; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<BloomFilter> Deserialize(std::string_view bytes, OpenMode mode = OpenMode::kCopy);

 private:
  uint64_t seed_ = 0;
  uint64_t count_ = 0;
  BloomPositions positions_;
  WordArray words_;
};

}  // namespace tamis
