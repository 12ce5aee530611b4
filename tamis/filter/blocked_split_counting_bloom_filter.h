// A blocked split counting Bloom filter: an approximate multiset of 64-bit hashes with exact
// erasure that touches one cache line, whatever it does.
//
// Choose it when keys leave the set, one key may be in it several times, and time counts more than
// memory; CuckooFilter takes a third of the memory (docs/FILTERS.md#choosing).
//
//   Layout      blocks of 8 lanes of 16 4-bit counters, one counter a lane and key
//               (docs/FORMATS.md#blocked-split-counting)
//   Memory      p = 1 %: 45.7 bits/key
//   FP rate     mean of (1 - (15/16)^i)^8 over the Poisson number i of keys in a block
//   MayContain, Insert, Erase   one cache line, no branch; insert never refuses
//   Erase       REQUIRES: the hash was inserted more often than erased
//   Overflow    a counter that reaches 15 sticks (saturated_count())
//   Threads     const members may run concurrently; others need exclusive access
//   Source      the split counting Bloom filter, with a slice as a vector lane; blocks as in Putze,
//               Sanders and Singler, JEA 2009
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/counter_array.h"
#include "tamis/filter/internal/counter_block.h"

namespace tamis {

class BlockedSplitCountingBloomFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kBlockedSplitCountingBloom;

  static Result<BlockedSplitCountingBloomFilter> Create(const Options& options);

  // Always true.
  bool Insert(uint64_t hash) {
    CounterChange change;
    functions_.raise(words_.MutableData() + Word(hash), Low(hash), &change);
    Raised(1, change);
    return true;
  }
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash) {
    CounterChange change;
    const bool erased = functions_.lower(words_.MutableData() + Word(hash), Low(hash), &change);
    Lowered(erased, change);
    return erased;
  }
  bool MayContain(uint64_t hash) const {
    return functions_.test(words_.data() + Word(hash), Low(hash));
  }
  // Bit i answers for hashes[i]: inserted (always), erased, perhaps contained.
  Bitmap Insert(std::span<const uint64_t> hashes);
  Bitmap Erase(std::span<const uint64_t> hashes);
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  // Adds counter by counter. kInvalidArgument unless size and seed are the same.
  Status Merge(const BlockedSplitCountingBloomFilter& other);
  void Clear();

  size_t SizeBytes() const { return words_.size_bytes(); }
  uint64_t Count() const { return count_; }  // inserted and not erased
  double Fill() const;                       // share of counters above 0
  double ExpectedFpr() const;                // mean over the blocks as they are; reads all of them
  uint64_t seed() const { return seed_; }
  uint64_t saturated_count() const { return saturated_; }
  uint64_t ignored_decrements() const { return ignored_decrements_; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<BlockedSplitCountingBloomFilter> Deserialize(std::string_view bytes,
                                                             OpenMode mode = OpenMode::kCopy);

 private:
  BlockedSplitCountingBloomFilter(uint64_t seed, WordArray words)
      : seed_(seed), words_(std::move(words)) {}

  uint64_t blocks() const { return words_.size() / kCounterBlockWords; }
  uint64_t Word(uint64_t hash) const { return FastRange(hash, blocks()) * kCounterBlockWords; }
  static uint32_t Low(uint64_t hash) { return static_cast<uint32_t>(hash); }
  void Raised(uint64_t keys, const CounterChange& change) {
    nonzero_ += change.zeros;
    saturated_ += change.sticky;
    count_ += keys;
  }
  void Lowered(uint64_t keys, const CounterChange& change) {
    nonzero_ -= change.zeros;
    ignored_decrements_ += change.sticky;
    count_ -= std::min(keys, count_);
  }
  CounterArray AsCounters(WordArray words) const {
    const uint64_t size = words.size() * CounterArray::kPerWord;
    return CounterArray(std::move(words), size, nonzero_, saturated_);
  }

  uint64_t seed_;
  uint64_t count_ = 0;
  uint64_t ignored_decrements_ = 0;
  uint64_t nonzero_ = 0;
  uint64_t saturated_ = 0;
  CounterBlockFunctions functions_ = CounterBlockFunctions::ForThisProcessor();
  WordArray words_;
};

}  // namespace tamis
