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
//   MayContain  4 buckets, fewer for most keys that are held
//   Insert      4 buckets; false = full, unchanged, unless it grows
//   Erase       4 buckets. REQUIRES: the hash was inserted more often than erased
//   Overflow    a counter at its greatest value sticks (saturated_count())
//   Growth      with `grows` a further table of the same size is added where one refuses, and
//               erase stays exact; the rate grows with the keys
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, ESA 2006
//               Differs: the permutations move the bucket by a hash of the remainder, where the
//               paper multiplies modulo 2^q: the buckets need not be a power of two
//
// Why erase is exact: a hash stands for one value (bucket, remainder) of buckets 2^r. Subtable i
// keeps it under ((bucket + g_i(remainder)) mod buckets, remainder), which is a permutation of the
// values: a cell tells its value. A value that is held already is counted in its cell, so it has
// one cell at most in all subtables and tables, and erasing it can hit no other.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"

namespace tamis {

class DLeftCountingBloomFilter {
 public:
  static constexpr uint32_t kSubtables = 4;

  struct Options {
    uint64_t capacity = 0;      // as in FilterOptions
    double fpr = 0.01;          // at capacity
    uint64_t seed = 0;          // as in FilterOptions
    uint32_t counter_bits = 4;  // 2 or 4
    bool grows = false;         // adds a table instead of refusing
  };
  static constexpr FilterKind kKind = FilterKind::kDLeftCountingBloom;

  static Result<DLeftCountingBloomFilter> Create(const Options& options);

  [[nodiscard]] bool Insert(uint64_t hash) { return Add(Find(hash), 1); }
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const { return Locate(Find(hash)).counter != 0; }
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
  uint64_t buckets() const { return geometry_.buckets; }  // of a subtable
  uint32_t remainder_bits() const { return geometry_.remainder_bits; }
  // Of each subtable, in all tables; reads all of them.
  std::array<uint64_t, kSubtables> CellsInUse() const;
  uint64_t saturated_count() const { return saturated_; }
  uint64_t ignored_decrements() const { return ignored_decrements_; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<DLeftCountingBloomFilter> Deserialize(std::string_view bytes,
                                                      OpenMode mode = OpenMode::kCopy);

 private:
  static constexpr uint32_t kCells = 8;  // of a bucket

  struct Geometry {
    uint64_t buckets;  // of a subtable
    uint32_t remainder_bits;
    uint32_t counter_bits;

    uint32_t cell_bits() const { return remainder_bits + counter_bits; }
    uint64_t TableWords() const { return (kSubtables * buckets * cell_bits() + 7) / 8 + 1; }
    uint64_t TableCells() const { return buckets * kSubtables * kCells; }
    friend bool operator==(const Geometry&, const Geometry&) = default;
  };
  struct Value {
    uint64_t bucket;
    uint64_t remainder;
  };
  // A cell by the number of its first bit; counter 0: the value is in none.
  struct Cell {
    size_t table = 0;
    uint64_t bit = 0;
    uint64_t counter = 0;
  };

  DLeftCountingBloomFilter(uint64_t seed, const Geometry& geometry, bool grows)
      : seed_(seed), geometry_(geometry), grows_(grows) {}

  Value Find(uint64_t hash) const;
  uint64_t Shift(uint64_t remainder, uint32_t subtable) const;  // g_i
  uint64_t Bucket(const Value& value, uint32_t subtable) const;
  uint64_t BucketBit(uint32_t subtable, uint64_t bucket) const {
    return (subtable * geometry_.buckets + bucket) * kCells * geometry_.cell_bits();
  }
  uint64_t Load(const WordArray& table, uint64_t bit) const;
  void Store(WordArray* table, uint64_t bit, uint64_t cell);
  Cell Locate(const Value& value) const;
  Cell Choose(const Value& value) const;
  bool Add(const Value& value, uint64_t copies);
  template <class Visit>
  bool ForEachCell(Visit&& visit) const;
  bool IsConsistent() const;

  uint64_t MaxCounter() const { return (uint64_t{1} << geometry_.counter_bits) - 1; }

  uint64_t seed_;
  Geometry geometry_;
  bool grows_;
  uint64_t count_ = 0;
  uint64_t used_ = 0;  // cells
  uint64_t saturated_ = 0;
  uint64_t ignored_decrements_ = 0;
  std::vector<WordArray> tables_;
};

}  // namespace tamis
