// A cuckoo filter: an approximate multiset of 64-bit hashes that supports erasure.
//
// Choose it when keys leave the set and the wanted false-positive rate is below about 3 %;
// otherwise BlockedBloomFilter is smaller and faster (docs/FILTERS.md#choosing).
//
//   Layout      any number of buckets x 4 slots x F-bit tags; 0 = empty (docs/FORMATS.md#cuckoo)
//   Memory      F / a bits per key, one less of F when semi-sorted, load a <= 0.95
//               F = 12: 12.6 bits/key; F = 13 semi-sorted: the same
//   FP rate     1 - (1 - 1/(2^F - 1))^(8a) <= 8 / (2^F - 1)       F = 12: 0.19 %, 13: 0.09 %
//   MayContain  O(1), two buckets
//   Insert      two buckets, the other buckets of their eight tags when both are full, then up to
//               kMaxKicks moves; false = full, unchanged
//   Erase       O(1), exact. REQUIRES: the hash was inserted more often than erased
//   Duplicates  a key may be in it as often as two buckets have slots, 8 times (4 for the one tag
//               in n whose buckets coincide); further inserts are refused. Several keys with 8
//               copies each that share a bucket do not fit: AnyFilter keeps at most four copies
//   Refusal     below capacity only rarely, in small filters: of filters for 32 keys, about 1 in
//               10^4 refuses a key
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Fan et al., CoNEXT 2014, sections 3 and 5.2
//               Differs: the other bucket is (s(tag) - bucket) mod n, its own inverse for every n,
//               so sizes need not be powers of two; a tag is kicked out only when no tag of its
//               bucket has room elsewhere; a full filter undoes its moves and refuses instead of
//               parking a victim
//
// Why erase is exact: tag and buckets of a hash are given, and the other bucket follows from tag
// and bucket alone. Two keys with the same tag and one bucket in common have both in common, so a
// copy of the tag in these buckets serves either of them, wherever it is taken away.
#pragma once

#include <string>
#include <string_view>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/cuckoo_table.h"

namespace tamis {

class CuckooFilter {
 public:
  struct Options {
    uint64_t capacity = 0;  // FilterOptions::capacity
    double fpr = 0.01;      // decides the tags' width
    uint64_t seed = 0;      // FilterOptions::seed
    // 4 to 32 (semi-sorted: 5 to 17); 0 = chosen from fpr, at least 8. With fewer than 8, Insert
    // may fail below the capacity.
    uint32_t tag_bits = 0;
    bool semi_sorted = false;  // a bit less for each key, two to three times the time
  };
  static constexpr FilterKind kKind = FilterKind::kCuckoo;
  static constexpr uint32_t kMaxKicks = CuckooTable::kMaxKicks;

  static Result<CuckooFilter> Create(const Options& options);

  [[nodiscard]] bool Insert(uint64_t hash);
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const { return table_.Contains(table_.PlaceOf(hash)); }
  uint32_t CopiesOf(uint64_t hash) const { return table_.Copies(table_.PlaceOf(hash)); }
  // Bit i answers for hashes[i]: inserted, erased, perhaps contained.
  Bitmap Insert(std::span<const uint64_t> hashes);
  Bitmap Erase(std::span<const uint64_t> hashes);
  Bitmap MayContain(std::span<const uint64_t> hashes) const { return table_.Contains(hashes); }

  // Afterwards this holds the keys of both; one that is in it `most_copies` times gets no more, and
  // may be erased no more. kInvalidArgument unless both have the same size and seed;
  // kResourceExhausted, and nothing is changed, when they do not fit.
  Status Merge(const CuckooFilter& other, uint32_t most_copies = 2 * CuckooTable::kSlots + 1);
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
  CuckooFilter(uint64_t seed, CuckooTable table) : seed_(seed), table_(std::move(table)) {}

  uint64_t seed_;
  uint64_t count_ = 0;
  CuckooTable table_;
};

}  // namespace tamis
