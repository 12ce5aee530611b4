// A dynamic count filter: a counting Bloom filter whose counters widen, so that none ever sticks.
//
// Choose it when keys come thousands of times and every one of them is to be erased again; where
// fourteen copies are enough, CountingBloomFilter is smaller (docs/FILTERS.md#choosing).
//
//   Layout      M counters: 4 bits of each, and beside them w more of each
//               (docs/FORMATS.md#dynamic-count)
//   Memory      (4 + w) x 1.44 log2(1/p) bits per key, w the least that the greatest needs
//               p = 1 %, counts below 16: 38.4 bits/key; below 256: 76.7
//   FP rate     (1 - e^(-kn/M))^k
//   MayContain  k random places, fewer for most absent keys
//   Insert      likewise; widening rewrites w
//   Erase       likewise. REQUIRES: the hash was inserted more often than erased
//   Overflow    none: counters go to 2^32 - 1, then the insert is refused
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Aguilar-Saborit, Trancoso, Muntes-Mulero and Larriba-Pey, SIGMOD Record 2006
//               Differs: narrows after as many erases as there are counters, and when empty
#pragma once

#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/bloom_positions.h"

namespace tamis {

class DynamicCountFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kDynamicCount;

  static Result<DynamicCountFilter> Create(const Options& options);

  [[nodiscard]] bool Insert(uint64_t hash) { return Add(hash); }
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const { return Copies(hash) != 0; }
  Bitmap MayContain(std::span<const uint64_t> hashes) const;
  // Its least counter: never less than how often the hash is in it.
  uint32_t Copies(uint64_t hash) const;

  // Adds counter by counter. kInvalidArgument unless both have the same options;
  // kResourceExhausted, and nothing is changed, when a counter would overflow.
  Status Merge(const DynamicCountFilter& other);
  void Clear();

  size_t SizeBytes() const { return low_.size_bytes() + high_.size_bytes(); }
  uint64_t Count() const { return count_; }  // inserted and not erased
  double Fill() const;                       // share of counters above 0
  double ExpectedFpr() const;                // from the fill as it is
  uint64_t seed() const { return seed_; }
  uint32_t counter_bits() const { return kLowBits + high_bits_; }

  // With counters of four bits.
  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<DynamicCountFilter> Deserialize(std::string_view bytes,
                                                OpenMode mode = OpenMode::kCopy);

 private:
  static constexpr uint32_t kLowBits = 4;
  static constexpr uint32_t kMaxHighBits = 28;

  DynamicCountFilter(uint64_t seed, BloomPositions positions, uint32_t high_bits, WordArray low,
                     WordArray high)
      : seed_(seed),
        positions_(positions),
        high_bits_(high_bits),
        low_(std::move(low)),
        high_(std::move(high)) {}

  static uint64_t LowWords(uint64_t counters) { return (counters + 15) / 16; }
  // A word behind the last counter lets each be read with one load of eight bytes.
  static uint64_t HighWords(uint64_t counters, uint32_t bits) {
    return bits == 0 ? 0 : (counters * bits + 63) / 64 + 1;
  }
  bool Add(uint64_t hash);
  uint64_t Get(uint64_t position) const;
  void Set(uint64_t position, uint64_t value);
  void MakeRoomFor(uint64_t value);
  // Copies what is borrowed: what allocates comes before what changes.
  void Own() {
    low_.MutableData();
    high_.MutableData();
  }
  uint64_t High(uint64_t position) const;
  void SetHighBits(uint32_t bits);
  void NarrowNowAndThen();

  uint64_t seed_;
  uint64_t count_ = 0;
  uint64_t nonzero_ = 0;
  uint64_t erases_ = 0;  // since the width was last looked at
  BloomPositions positions_;
  uint32_t high_bits_;
  WordArray low_;
  WordArray high_;
};

}  // namespace tamis
