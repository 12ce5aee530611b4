// CuckooBuckets: what is done with buckets of four tags of F bits, with F known to the compiler, so
// that a bucket is a word (two, above 16 bits) and its tags are compared all at once. A tag of 0 is
// an empty slot.
//
// Plain: the four tags one behind the other, 4 F bits a bucket. Semi-sorted: the tags of a bucket
// are kept in the order of their low four bits; there are only 3,876 such orders, so 12 bits tell
// all four low parts (Fan et al. 2014, section 5.2) and a bucket has 4 (F - 1) bits. Semi-sorted
// buckets must fit a word, so F is 5 to 17 there.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tamis {

inline constexpr uint32_t kCuckooSlots = 4;
inline constexpr uint32_t kMinCuckooTagBits = 4;
inline constexpr uint32_t kMaxCuckooTagBits = 32;
inline constexpr uint32_t kMinSemiSortedTagBits = 5;
inline constexpr uint32_t kMaxSemiSortedTagBits = 17;

using CuckooTags = std::array<uint32_t, kCuckooSlots>;

namespace internal {

// Ascending sequences of `length` numbers from x to 15.
constexpr uint32_t AscendingFrom(uint32_t x, uint32_t length) {
  uint32_t n = 1;
  for (uint32_t i = 0; i < length; ++i) n = n * (16 - x + i) / (i + 1);
  return n;
}

// For each x, how many more sequences of that length than of one less begin below x.
constexpr std::array<uint16_t, 16> BeginBelow(uint32_t length) {
  std::array<uint16_t, 16> below{};
  for (uint32_t x = 0; x + 1 < 16; ++x) {
    below[x + 1] =
        static_cast<uint16_t>(below[x] + AscendingFrom(x, length) - AscendingFrom(x, length - 1));
  }
  return below;
}

}  // namespace internal

// The four low parts of a semi-sorted bucket, in ascending order, and their number among all such
// quadruples in lexicographic order.
class SemiSortedCodes {
 public:
  static constexpr uint32_t kBits = 12;
  static constexpr uint32_t kCount = 3876;  // multisets of four out of sixteen: C(19, 4)

  // The first in the lowest four bits; 0 for what is no code.
  static uint32_t Parts(uint64_t code) { return kParts[code]; }
  // How many quadruples come before: those that are less in the first place, then in the second,
  // and so on, as a sum with one term a place.
  static uint32_t Code(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return kFirst[a] + kSecond[b] + kThird[c] + d;
  }

 private:
  static constexpr auto kParts = [] {
    std::array<uint16_t, 1 << kBits> parts{};
    uint32_t next = 0;
    for (uint32_t a = 0; a < 16; ++a) {
      for (uint32_t b = a; b < 16; ++b) {
        for (uint32_t c = b; c < 16; ++c) {
          for (uint32_t d = c; d < 16; ++d) {
            parts[next++] = static_cast<uint16_t>(a | b << 4 | c << 8 | d << 12);
          }
        }
      }
    }
    return parts;
  }();
  static constexpr auto kFirst = internal::BeginBelow(3);
  static constexpr auto kSecond = internal::BeginBelow(2);
  static constexpr auto kThird = internal::BeginBelow(1);
};

template <uint32_t kTagBits, bool kSemiSorted>
struct CuckooBuckets {
  static constexpr uint32_t kWidth = kTagBits;
  static constexpr uint32_t kBits = kCuckooSlots * (kTagBits - kSemiSorted);  // bits of a bucket
  // A bucket begins at bit 0 or 4 of a byte, so that it fits together with the bits before it.
  using Word = std::conditional_t<(kBits <= 64), uint64_t, unsigned __int128>;

  // The bucket is in the low bits; what is above is not part of it.
  static Word Load(const char* table, uint64_t bucket) {
    Word word;
    std::memcpy(&word, table + bucket * kBits / 8, sizeof(word));
    return kBits % 8 == 0 ? word : word >> (bucket * kBits % 8);
  }
  static void Store(char* table, uint64_t bucket, Word value) {
    const uint32_t shift = bucket * kBits % 8;
    const Word mask = MaskOf(kBits) << shift;
    Word word;
    std::memcpy(&word, table + bucket * kBits / 8, sizeof(word));
    word = (word & ~mask) | (value << shift & mask);
    std::memcpy(table + bucket * kBits / 8, &word, sizeof(word));
  }

  static CuckooTags Tags(Word bucket) {
    CuckooTags tags;
    if constexpr (kSemiSorted) {
      const uint32_t low = SemiSortedCodes::Parts(bucket & MaskOf(SemiSortedCodes::kBits));
      for (uint32_t i = 0; i < kCuckooSlots; ++i) {
        tags[i] = static_cast<uint32_t>(Rest(bucket, i) << 4) | (low >> (4 * i) & 15);
      }
    } else {
      for (uint32_t i = 0; i < kCuckooSlots; ++i) {
        tags[i] = static_cast<uint32_t>(bucket >> (i * kTagBits) & MaskOf(kTagBits));
      }
    }
    return tags;
  }

  static bool Has(Word bucket, uint32_t tag) {
    if constexpr (kSemiSorted) {
      return Slot(bucket, tag) != kCuckooSlots;
    } else {
      return Marks(bucket, tag) != 0;
    }
  }
  // The first slot that holds the tag, kCuckooSlots when none does.
  static uint32_t Slot(Word bucket, uint32_t tag) {
    if constexpr (kSemiSorted) {
      const CuckooTags tags = Tags(bucket);
      uint32_t equal = 1u << kCuckooSlots;
      for (uint32_t i = 0; i < kCuckooSlots; ++i) equal |= uint32_t{tags[i] == tag} << i;
      return std::countr_zero(equal);
    } else if constexpr (kBits <= 64) {
      const uint64_t marks = Marks(bucket, tag);
      return marks == 0 ? kCuckooSlots : std::countr_zero(marks) / kTagBits;
    } else {
      const Word marks = Marks(bucket, tag);
      const auto low = static_cast<uint64_t>(marks);
      const uint32_t bit = low != 0 ? std::countr_zero(low)
                                    : 64 + std::countr_zero(static_cast<uint64_t>(marks >> 64));
      return marks == 0 ? kCuckooSlots : bit / kTagBits;
    }
  }
  // The bucket with another tag in the slot; the order of a semi-sorted one may change.
  static Word With(Word bucket, uint32_t slot, uint32_t tag) {
    if constexpr (kSemiSorted) {
      CuckooTags tags = Tags(bucket);
      tags[slot] = tag;
      return SemiSorted(tags);
    } else {
      const uint32_t shift = slot * kTagBits;
      return (bucket & ~(MaskOf(kTagBits) << shift)) | static_cast<Word>(tag) << shift;
    }
  }

  // Where the tag lies in what With() returned.
  static uint32_t SlotWith(Word bucket, uint32_t slot, uint32_t tag) {
    return kSemiSorted ? Slot(bucket, tag) : slot;
  }

  // Checks bytes: a semi-sorted bucket has a known code, and its tags are in order.
  static bool IsConsistent(Word bucket) {
    return !kSemiSorted || SemiSorted(Tags(bucket)) == (bucket & MaskOf(kBits));
  }

 private:
  static constexpr Word MaskOf(uint32_t bits) { return ~Word{0} >> (8 * sizeof(Word) - bits); }

  // The lowest bit of each tag of a plain bucket.
  static constexpr Word kOnes = [] {
    Word ones = 0;
    for (uint32_t i = 0; i < kCuckooSlots && !kSemiSorted; ++i) ones |= Word{1} << (i * kTagBits);
    return ones;
  }();

  // The top bit of every tag of a plain bucket that equals the tag. Tags above one that is equal
  // may be marked wrongly, so that the lowest mark and "none" are exact.
  static Word Marks(Word bucket, uint32_t tag) {
    const Word x = bucket ^ (tag * kOnes);
    return (x - kOnes) & ~x & (kOnes << (kTagBits - 1));
  }

  static uint64_t Rest(uint64_t bucket, uint32_t slot) {
    constexpr uint32_t kRestBits = kTagBits - 4;
    return bucket >> (SemiSortedCodes::kBits + slot * kRestBits) & MaskOf(kRestBits);
  }
  // By low part first; within it by the rest, so that equal buckets have equal bytes.
  static Word SemiSorted(CuckooTags tags) {
    for (uint32_t& tag : tags) tag = std::rotr(tag, 4);
    const auto order = [&](uint32_t i, uint32_t j) {
      const uint32_t less = std::min(tags[i], tags[j]);
      tags[j] = std::max(tags[i], tags[j]);
      tags[i] = less;
    };
    order(0, 1);
    order(2, 3);
    order(0, 2);
    order(1, 3);
    order(1, 2);
    const auto low = [&](uint32_t i) { return tags[i] >> 28; };
    Word word = SemiSortedCodes::Code(low(0), low(1), low(2), low(3));
    for (uint32_t i = 0; i < kCuckooSlots; ++i) {
      const Word rest = tags[i] & ((uint32_t{1} << 28) - 1);
      word |= rest << (SemiSortedCodes::kBits + i * (kTagBits - 4));
    }
    return word;
  }
};

inline bool IsCuckooWidth(uint64_t tag_bits, bool semi_sorted) {
  return semi_sorted ? tag_bits >= kMinSemiSortedTagBits && tag_bits <= kMaxSemiSortedTagBits
                     : tag_bits >= kMinCuckooTagBits && tag_bits <= kMaxCuckooTagBits;
}

// Calls f with the CuckooBuckets of a width. REQUIRES: IsCuckooWidth().
template <class F>
auto WithCuckooBuckets(uint32_t tag_bits, bool semi_sorted, F&& f) {
  using Result = decltype(f(CuckooBuckets<kMinCuckooTagBits, false>()));
  using Call = Result (*)(F&);
  constexpr auto kCalls = []<uint32_t... kPlain, uint32_t... kSemi>(
      std::integer_sequence<uint32_t, kPlain...>, std::integer_sequence<uint32_t, kSemi...>) {
    return std::array<Call, sizeof...(kPlain) + sizeof...(kSemi)>{
        [](F& g) { return g(CuckooBuckets<kMinCuckooTagBits + kPlain, false>()); }...,
        [](F& g) { return g(CuckooBuckets<kMinSemiSortedTagBits + kSemi, true>()); }...};
  };
  constexpr uint32_t kPlainWidths = kMaxCuckooTagBits - kMinCuckooTagBits + 1;
  constexpr uint32_t kSemiWidths = kMaxSemiSortedTagBits - kMinSemiSortedTagBits + 1;
  static constexpr auto kTable = kCalls(std::make_integer_sequence<uint32_t, kPlainWidths>(),
                                        std::make_integer_sequence<uint32_t, kSemiWidths>());
  return kTable[semi_sorted ? kPlainWidths + tag_bits - kMinSemiSortedTagBits
                            : tag_bits - kMinCuckooTagBits](f);
}

}  // namespace tamis
