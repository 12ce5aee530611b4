// A projected counting Bloom filter: counters for the thread that writes, and beside them one bit
// for each counter for the threads that read.
//
// Choose it when keys leave the set and lookups must be as fast as in a filter that cannot erase: a
// lookup reads only the bits, which are a blocked Bloom filter (docs/FILTERS.md#choosing).
//
//   Layout      blocks of 8 lanes x 32 bits, and beside each 8 x 32 4-bit counters; a bit is set
//               where its counter is above 0                  (docs/FORMATS.md#projected-counting)
//   Memory      p = 1 %: 10.5 bits/key for readers, 52.7 in all
//   FP rate     as BlockedBloomFilter with 8 lanes
//   MayContain  one cache line         Insert, Erase  three lines; insert never refuses
//   Erase       exact. REQUIRES: the hash was inserted more often than erased
//   Overflow    a counter that reaches 15 sticks (saturated_count())
//   Threads     const members may run concurrently; others need exclusive access, except that
//               MayContainWhileWritten may run while one thread inserts and erases
//   Source      the split counting Bloom filter and its bit projection; blocks as in Putze, Sanders
//               and Singler, JEA 2009
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/counter_array.h"
#include "tamis/filter/internal/split_block.h"

namespace tamis {

class ProjectedCountingBloomFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kProjectedCountingBloom;

  static Result<ProjectedCountingBloomFilter> Create(const Options& options);

  bool Insert(uint64_t hash);  // always true
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const { return blocks_.Test(bits_.data(), hash); }
  // Bit i answers for hashes[i]: inserted (always), erased, perhaps contained.
  Bitmap Insert(std::span<const uint64_t> hashes);
  Bitmap Erase(std::span<const uint64_t> hashes);
  Bitmap MayContain(std::span<const uint64_t> hashes) const {
    return blocks_.Test(bits_.data(), hashes);
  }

  // A key is found from the end of its insert to the beginning of its last erase.
  // REQUIRES: the filter was not read with OpenMode::kBorrow.
  bool MayContainWhileWritten(uint64_t hash) const;

  // Adds counter by counter. kInvalidArgument unless size and seed are the same.
  Status Merge(const ProjectedCountingBloomFilter& other);
  void Clear();

  size_t SizeBytes() const { return bits_.size_bytes() + counters_.words().size_bytes(); }
  size_t ReaderBytes() const { return bits_.size_bytes(); }  // bytes that lookups touch
  uint64_t Count() const { return count_; }                  // inserted and not erased
  double Fill() const;                                       // share of counters above 0
  double ExpectedFpr() const;  // mean over the blocks as they are; reads all of them
  uint64_t seed() const { return seed_; }
  uint64_t saturated_count() const { return counters_.saturated(); }
  uint64_t ignored_decrements() const { return ignored_decrements_; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<ProjectedCountingBloomFilter> Deserialize(std::string_view bytes,
                                                          OpenMode mode = OpenMode::kCopy);

 private:
  static constexpr uint32_t kLanes = 8;
  static constexpr uint32_t kLaneBits = 32;

  ProjectedCountingBloomFilter(uint64_t seed, SplitBlocks blocks, WordArray bits,
                               CounterArray counters)
      : seed_(seed), blocks_(blocks), bits_(std::move(bits)), counters_(std::move(counters)) {}

  // The number of the hash's counter in a lane, and of its bit, counted over all blocks.
  uint64_t Position(uint64_t hash, uint32_t lane) const {
    return (blocks_.Block(hash) * kLanes + lane) * kLaneBits + SplitBlocks::LaneBit(hash, lane);
  }
  void Prefetch(uint64_t hash) const;
  void Project();

  uint64_t seed_;
  uint64_t count_ = 0;
  uint64_t ignored_decrements_ = 0;
  SplitBlocks blocks_;
  WordArray bits_;
  CounterArray counters_;
};

}  // namespace tamis
