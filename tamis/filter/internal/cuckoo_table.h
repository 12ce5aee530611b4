// CuckooTable: buckets of four tags of 4 to 32 bits, packed (cuckoo_buckets.h). Each hash has two
// buckets, in one of which its tag lies.
//
// Threads: const members may run concurrently; others need exclusive access.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "tamis/base/hash.h"
#include "tamis/filter/filter_options.h"
#include "tamis/filter/internal/cuckoo_buckets.h"
#include "tamis/filter/internal/word_array.h"

namespace tamis {

class CuckooTable {
 public:
  static constexpr uint32_t kSlots = kCuckooSlots;
  static constexpr uint32_t kMaxKicks = 500;

  // A tag and its two buckets; either follows from the other and the tag.
  struct Place {
    uint64_t bucket;
    uint64_t other;
    uint32_t tag;
  };

  // A word behind the last bucket lets every bucket be read with one load or two.
  static uint64_t WordsFor(uint64_t buckets, uint32_t tag_bits, bool semi_sorted) {
    return (buckets * kSlots * (tag_bits - semi_sorted) + 63) / 64 + 1;
  }

  // REQUIRES: IsCuckooWidth(tag_bits, semi_sorted), words.size() == WordsFor(...).
  CuckooTable(uint64_t buckets, uint32_t tag_bits, bool semi_sorted, WordArray words);

  uint64_t buckets() const { return buckets_; }
  uint32_t tag_bits() const { return tag_bits_; }
  bool semi_sorted() const { return semi_sorted_; }
  const WordArray& words() const { return words_; }

  Place PlaceOf(uint64_t hash) const { return PlaceOf(hash, buckets_, tag_bits_); }
  Place PlaceOf(uint64_t bucket, uint32_t tag) const {
    return {bucket, Other(bucket, tag, buckets_), tag};
  }
  // The bucket by the hash's high bits, the tag by its low 32.
  static Place PlaceOf(uint64_t hash, uint64_t buckets, uint32_t tag_bits) {
    const uint64_t tags = (uint64_t{1} << tag_bits) - 1;  // 1 .. tags
    const uint64_t low = static_cast<uint32_t>(hash);
    const auto tag = static_cast<uint32_t>(1 + (low * tags >> 32));
    const uint64_t bucket = FastRange(hash, buckets);
    return {bucket, Other(bucket, tag, buckets), tag};
  }
  static uint64_t Other(uint64_t bucket, uint32_t tag, uint64_t buckets) {
    const uint64_t other = FastRange(tag * uint64_t{0x9e3779b97f4a7c15}, buckets) - bucket;
    return std::min(other, other + buckets);  // without a branch to mispredict
  }

  bool Contains(const Place& place) const;
  uint32_t Copies(const Place& place) const;
  Bitmap Contains(std::span<const uint64_t> hashes) const;
  // At most kMaxKicks tags are moved to their other buckets for it; false = full, unchanged.
  bool Insert(const Place& place);
  Bitmap Insert(std::span<const uint64_t> hashes);
  // False, and nothing is changed, when it is in neither bucket.
  bool Erase(const Place& place);
  Bitmap Erase(std::span<const uint64_t> hashes);

  CuckooTags Tags(uint64_t bucket) const;
  uint64_t CountTags() const;
  // True if all semi-sorted codes are valid and sorted and all bits after the last bucket are 0.
  bool IsConsistent() const;

 private:
  const char* bytes() const { return reinterpret_cast<const char*>(words_.data()); }
  char* MutableBytes() { return reinterpret_cast<char*>(words_.MutableData()); }

  template <class F>
  auto WithWidth(F&& f) const;

  uint64_t buckets_;
  uint32_t tag_bits_;
  bool semi_sorted_;
  WordArray words_;
};

}  // namespace tamis
