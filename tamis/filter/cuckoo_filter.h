// A cuckoo filter: an approximate multiset of 64-bit hashes that supports erasure.
//
// Choose it when keys leave the set and the wanted false-positive rate is below about 3 %;
// otherwise BlockedBloomFilter is smaller and faster (docs/FILTERS.md#choosing).
//
//   Layout      any number of buckets x 4 slots x F-bit tags; 0 = empty (docs/FORMATS.md#cuckoo)
//   Memory      F / a bits per key, one less of F when semi-sorted, load a <= 0.95
//               F = 12: 12.6 bits/key; F = 13 semi-sorted: the same
//   FP rate     1 - (1 - 1/(2^F - 1))^(8a) <= 8 / (2^F - 1)       F = 12: 0.19 %, 13: 0.09 %
//   MayContain  O(1), two buckets      Insert  <= kMaxKicks moves; false = full, unchanged
//   Erase       O(1), exact. REQUIRES: the hash was inserted more often than erased
//   Duplicates  a key may be in it as often as two buckets have slots, 8 times (4 for the one tag
//   in
//               n whose buckets coincide); further inserts are refused
//   Refusal     up to capacity only by a rare accident of a small filter (1 in 10^4 of 32 keys)
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Fan et al., CoNEXT 2014, sections 3 and 5.2
//               Differs: the other bucket is (s(tag) - bucket) mod n, its own inverse for every n,
//               so sizes need not be powers of two; a full filter undoes its moves and refuses
//               instead of parking a victim
//
// Why erase is exact: tag and buckets of a hash are given, and the other bucket follows from tag
// and bucket alone. Two keys with the same tag and one bucket in common have both in common, so a
// copy of the tag in these buckets serves either of them, wherever it is taken away.
#pragma once

#include <string>
#include <string_view>

#include "tamis/base/hash.h"
#include "tamis/filter/cuckoo_table.h"
#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"

namespace tamis {

class CuckooFilter {
 public:
  struct Options {
    uint64_t capacity = 0;     // as in FilterOptions
    double fpr = 0.01;         // decides the tags' width
    uint64_t seed = 0;         // as in FilterOptions
    uint32_t tag_bits = 0;     // 4 to 32; 0 = from fpr, at least 8. Narrower tags may fill up early
    bool semi_sorted = false;  // a bit less for each key, about twice the time
  };
  static constexpr FilterKind kKind = FilterKind::kCuckoo;
  static constexpr uint32_t kMaxKicks = 500;

  static Result<CuckooFilter> Create(const Options& options);

  [[nodiscard]] bool Insert(uint64_t hash);
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const {
    const Place place = Find(hash);
    return table_.Contains(place.bucket, place.tag) ||
           table_.Contains(Other(place.bucket, place.tag), place.tag);
  }
  // Bit i answers for hashes[i]: inserted, erased, perhaps contained.
  Bitmap Insert(std::span<const uint64_t> hashes);
  Bitmap Erase(std::span<const uint64_t> hashes);
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  // Afterwards this holds the keys of both. kInvalidArgument unless both have the same size and
  // seed; kResourceExhausted, and nothing is changed, when they do not fit.
  Status Merge(const CuckooFilter& other);
  void Clear();

  size_t SizeBytes() const { return table_.words().size_bytes(); }
  uint64_t Count() const { return count_; }  // inserted and not erased
  double Fill() const;                       // share of slots in use
  double ExpectedFpr() const;                // from the fill as it is
  uint64_t seed() const { return seed_; }
  uint32_t tag_bits() const { return table_.tag_bits(); }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<CuckooFilter> Deserialize(std::string_view bytes, OpenMode mode = OpenMode::kCopy);

 private:
  struct Place {
    uint64_t bucket;
    uint32_t tag;
  };

  CuckooFilter(uint64_t seed, CuckooTable table) : seed_(seed), table_(std::move(table)) {}

  // The bucket by the hash's high bits, the tag by its low 32.
  Place Find(uint64_t hash) const {
    const uint64_t tags = (uint64_t{1} << table_.tag_bits()) - 1;  // 1 .. tags
    const uint64_t low = static_cast<uint32_t>(hash);
    return {FastRange(hash, table_.buckets()), static_cast<uint32_t>(1 + (low * tags >> 32))};
  }
  uint64_t Other(uint64_t bucket, uint32_t tag) const {
    const uint64_t sum = FastRange(tag * uint64_t{0x9e3779b97f4a7c15}, table_.buckets());
    return sum >= bucket ? sum - bucket : sum + table_.buckets() - bucket;
  }
  bool Add(Place place, uint64_t choice);
  void Prefetch(uint64_t hash) const;

  uint64_t seed_;
  uint64_t count_ = 0;
  CuckooTable table_;
};

}  // namespace tamis
