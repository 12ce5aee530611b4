// A d-left counting Bloom filter: an approximate multiset of 64-bit hashes with erasure and counts,
// in half the memory of counters.
//
// Choose it when keys leave the set, rates are low and the number of keys is unknown (`grows`);
// CuckooFilter is smaller and BlockedQuotientFilter faster (docs/FILTERS.md#choosing).
//
//   Layout      4 subtables of any number of buckets of 8 cells, a cell = remainder of r bits and
//               counter of 2 or 4; counter 0 = empty          (docs/FORMATS.md#d-left-counting)
//   Memory      (r + counter) / 0.75 bits per key             p = 1e-6, 4 bits: 38.7; 2 bits: 36
//   FP rate     keys / (buckets 2^r) = 24 / 2^r at capacity   p = 1e-6: r = 25
//   MayContain  4 buckets
//   Insert      4 buckets; false = full, unchanged, unless it grows
//   Erase       4 buckets. REQUIRES: the hash was inserted more often than erased
//   Overflow    a counter at its greatest value sticks (saturated_count())
//   Growth      with `grows` a further table of the same size is added where one refuses, and
//               erase stays exact; the rate grows with the keys
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, ESA 2006
//               Differs: the permutations move the bucket by i times a step that follows from the
//               remainder, where the paper multiplies modulo 2^q: the buckets need not be a power
//               of two. Choices at equal distances balance as independent ones do (Mitzenmacher,
//               Balanced allocations and double hashing, SPAA 2014)
//
// Why erase is exact: a hash stands for one value (bucket, remainder) of buckets 2^r. Subtable i
// keeps it under ((bucket + i step(remainder)) mod buckets, remainder), which is a permutation of
// the values: a cell tells its value. A value that is held already is counted in its cell, so it
// has one cell at most in all subtables and tables, and erasing it can hit no other.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/d_left_layout.h"

namespace tamis {

class DLeftCountingBloomFilter {
 public:
  static constexpr uint32_t kSubtables = DLeftLayout::kSubtables;

  struct Options {
    uint64_t capacity = 0;      // FilterOptions::capacity
    double fpr = 0.01;          // at capacity
    uint64_t seed = 0;          // FilterOptions::seed
    uint32_t counter_bits = 4;  // 2 or 4
    bool grows = false;         // adds a table instead of refusing
  };
  static constexpr FilterKind kKind = FilterKind::kDLeftCountingBloom;

  static Result<DLeftCountingBloomFilter> Create(const Options& options);

  [[nodiscard]] bool Insert(uint64_t hash);
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const;
  // Bit i answers for hashes[i]: inserted, erased, perhaps contained.
  Bitmap Insert(std::span<const uint64_t> hashes);
  Bitmap Erase(std::span<const uint64_t> hashes);
  Bitmap MayContain(std::span<const uint64_t> hashes) const;

  // Afterwards this holds the keys of both. kInvalidArgument unless both have the same size and
  // seed; kResourceExhausted, and nothing is changed, when they do not fit.
  Status Merge(const DLeftCountingBloomFilter& other);
  void Clear();

  size_t SizeBytes() const;
  uint64_t Count() const { return count_; }  // inserted and not erased
  double Fill() const;                       // share of cells in use
  double ExpectedFpr() const;                // from the cells in use
  uint64_t seed() const { return seed_; }
  size_t tables() const { return tables_.size(); }
  uint64_t buckets() const { return layout_.buckets(); }  // buckets of a subtable
  uint32_t remainder_bits() const { return layout_.remainder_bits(); }
  // For each subtable, in all tables; reads all of them.
  std::array<uint64_t, kSubtables> CellsInUse() const;
  uint64_t saturated_count() const { return saturated_; }
  uint64_t ignored_decrements() const { return ignored_decrements_; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<DLeftCountingBloomFilter> Deserialize(std::string_view bytes,
                                                      OpenMode mode = OpenMode::kCopy);

 private:
  using Place = DLeftLayout::Place;
  struct Cell {
    size_t table;
    uint64_t bucket;  // its first byte
    uint32_t number;
  };

  DLeftCountingBloomFilter(uint64_t seed, DLeftLayout layout, bool grows)
      : seed_(seed), layout_(layout), grows_(grows) {}

  const char* Bytes(size_t table) const {
    return reinterpret_cast<const char*>(tables_[table].data());
  }
  char* MutableBytes(size_t table) { return reinterpret_cast<char*>(tables_[table].MutableData()); }
  Place PlaceOf(uint64_t hash) const { return layout_.PlaceOf(layout_.ValueOf(hash)); }
  Place Fetched(uint64_t hash) const;
  std::optional<Cell> Locate(const Place& place) const;
  std::optional<Cell> Choose(const Place& place) const;
  bool Add(const Place& place, uint64_t copies);
  bool Remove(const Place& place);
  template <class Visit>
  bool ForEachCell(Visit&& visit) const;
  bool IsConsistent() const;

  uint64_t seed_;
  DLeftLayout layout_;
  bool grows_;
  uint64_t count_ = 0;
  uint64_t used_ = 0;  // cells
  uint64_t saturated_ = 0;
  uint64_t ignored_decrements_ = 0;
  std::vector<WordArray> tables_;
};

}  // namespace tamis
