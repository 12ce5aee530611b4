// A blocked Bloom filter: an approximate set of 64-bit hashes, the fastest here.
//
// Choose it when keys never leave the set; for the least memory BloomFilter saves a tenth
// (docs/FILTERS.md#choosing).
//
//   Layout      blocks of 8 or 16 lanes of 32 bits, one bit a lane and key
//                                                             (docs/FORMATS.md#blocked-bloom)
//   Memory      p = 1 %: 10.5 bits/key   0.1 %: 16.9   0.01 % (16 lanes): 23.0
//   FP rate     mean of (1 - (31/32)^i)^lanes over the Poisson number i of keys in a block
//   MayContain  one cache line         Insert  one cache line, never refuses
//   Erase       none
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Putze, Sanders and Singler, JEA 2009, section 3; lanes as in Apache Parquet
//               Differs: own salts, 16 lanes where a low rate asks for them
#pragma once

#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/split_block.h"
#include "tamis/filter/internal/word_array.h"

namespace tamis {

class BlockedBloomFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kBlockedBloom;

  static Result<BlockedBloomFilter> Create(const Options& options);

  // Always true.
  bool Insert(uint64_t hash) {
    blocks_.Set(words_.MutableData(), hash);
    ++count_;
    return true;
  }
  // Bit i answers for hashes[i]: inserted (always), perhaps contained.
  Bitmap Insert(std::span<const uint64_t> hashes);
  bool MayContain(uint64_t hash) const { return blocks_.Test(words_.data(), hash); }
  Bitmap MayContain(std::span<const uint64_t> hashes) const {
    return blocks_.Test(words_.data(), hashes);
  }

  // Afterwards this holds the keys of both. kInvalidArgument unless both have the same options.
  Status Merge(const BlockedBloomFilter& other);
  void Clear();

  size_t SizeBytes() const { return words_.size_bytes(); }
  uint64_t Count() const { return count_; }  // keys inserted, repeated ones too
  double Fill() const;                       // share of bits set; reads all of them
  double ExpectedFpr() const;                // mean over the blocks as they are; reads all of them
  uint64_t seed() const { return seed_; }
  uint32_t lanes() const { return blocks_.lanes(); }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<BlockedBloomFilter> Deserialize(std::string_view bytes,
                                                OpenMode mode = OpenMode::kCopy);

 private:
  BlockedBloomFilter(uint64_t seed, SplitBlocks blocks, WordArray words)
      : seed_(seed), blocks_(blocks), words_(std::move(words)) {}

  uint64_t seed_;
  uint64_t count_ = 0;
  SplitBlocks blocks_;
  WordArray words_;
};

}  // namespace tamis
