// CuckooTable: buckets of four tags of 4 to 32 bits, packed. A tag of 0 is an empty slot.
//
// Plain: the four tags one behind the other, 4 F bits a bucket. Semi-sorted: the tags of a bucket
// are kept in the order of their low four bits; there are only 3,876 such orders, so 12 bits tell
// all four low parts (Fan et al. 2014, section 5.2) and a bucket has 4 (F - 1) bits. Semi-sorted
// buckets must fit a word, so F is 5 to 17 there.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "tamis/filter/word_array.h"

namespace tamis {

class CuckooTable {
 public:
  static constexpr uint32_t kSlots = 4;
  static constexpr uint32_t kMinTagBits = 4;
  static constexpr uint32_t kMaxTagBits = 32;
  static constexpr uint32_t kMinSemiSortedTagBits = 5;
  static constexpr uint32_t kMaxSemiSortedTagBits = 17;

  using Tags = std::array<uint32_t, kSlots>;

  static bool IsValid(uint64_t tag_bits, bool semi_sorted) {
    return semi_sorted ? tag_bits >= kMinSemiSortedTagBits && tag_bits <= kMaxSemiSortedTagBits
                       : tag_bits >= kMinTagBits && tag_bits <= kMaxTagBits;
  }
  // A word behind the last bucket lets every tag be read with one load of eight bytes.
  static uint64_t WordsFor(uint64_t buckets, uint32_t tag_bits, bool semi_sorted) {
    return (buckets * kSlots * (tag_bits - semi_sorted) + 63) / 64 + 1;
  }

  CuckooTable() = default;
  // REQUIRES: IsValid(tag_bits, semi_sorted), words.size() == WordsFor(...).
  CuckooTable(uint64_t buckets, uint32_t tag_bits, bool semi_sorted, WordArray words);

  uint64_t buckets() const { return buckets_; }
  uint32_t tag_bits() const { return tag_bits_; }
  bool semi_sorted() const { return semi_sorted_; }
  const WordArray& words() const { return words_; }

  Tags Read(uint64_t bucket) const;
  // The first slot that holds the tag, kSlots when none does.
  uint32_t Find(uint64_t bucket, uint32_t tag) const;
  bool Contains(uint64_t bucket, uint32_t tag) const {
    return HasSimplePlainBucket() ? ZeroFields(Load(bucket * bucket_bits_), tag) != 0
                                  : Find(bucket, tag) != kSlots;
  }
  // Replaces what is in a slot; returns the slot where the tag lies now.
  uint32_t Set(uint64_t bucket, uint32_t slot, uint32_t tag);

  void Prefetch(uint64_t bucket) const {
    __builtin_prefetch(reinterpret_cast<const char*>(words_.data()) + bucket * bucket_bits_ / 8);
  }

  uint64_t CountTags() const;
  // Semi-sorted codes are known ones and in order, and nothing stands behind the last bucket.
  bool IsConsistent() const;

 private:
  // Fits a word together with the four bits that a bucket may begin late in its first byte.
  bool HasSimplePlainBucket() const { return !semi_sorted_ && tag_bits_ <= 16; }

  // 64 bits from a bit position; those behind the eighth byte are missing.
  uint64_t Load(uint64_t bit) const {
    uint64_t word;
    std::memcpy(&word, reinterpret_cast<const char*>(words_.data()) + bit / 8, sizeof(word));
    return word >> (bit % 8);
  }
  void Store(uint64_t bit, uint64_t mask, uint64_t value);

  // The top bit of every field of a plain bucket that equals the tag. Fields above one that is
  // equal may be marked wrongly, so the lowest mark and "none" are exact.
  uint64_t ZeroFields(uint64_t bucket_word, uint32_t tag) const {
    const uint64_t x = bucket_word ^ (tag * field_ones_);
    return (x - field_ones_) & ~x & (field_ones_ << (tag_bits_ - 1));
  }

  uint64_t buckets_ = 0;
  uint32_t tag_bits_ = 0;
  uint32_t bucket_bits_ = 0;
  uint64_t field_ones_ = 0;  // the lowest bit of each field of a plain bucket
  bool semi_sorted_ = false;
  WordArray words_;
};

}  // namespace tamis
