// A quotient filter: an approximate multiset of 64-bit hashes that can be listed, merged, doubled
// and halved without its keys.
//
// Choose it when filters are to be resized or walked through; BlockedQuotientFilter answers faster
// (docs/FILTERS.md#choosing).
//
//   Layout      slots of r + 3 bits in one sequence, any number of them (docs/FORMATS.md#quotient)
//   Memory      (r + 3) / 0.85 bits per key                   p = 1 %: 11.8   0.1 %: 15.3
//   FP rate     load / 2^r
//   MayContain  one stretch of slots, mostly one or two lines
//   Insert      rewrites the stretch up to the next empty slot; false = full, unchanged
//   Erase       likewise. Exact. REQUIRES: the hash was inserted more often than erased
//   Duplicates  Copies() tells how many; kMaxCopies are kept, further inserts are refused
//   Growth      Grow and Shrink move a bit between quotient and remainder: the rate for the keys it
//               holds stays what it is
//   Threads     const members may run concurrently; others need exclusive access
//   Source      Bender et al., VLDB 2012        Differs: hash * slots is quotient and remainder, so
//               the slots need not be a power of two; a tail instead of a wrap-around
//
// A fingerprint is quotient * 2^r + remainder. They lie in ascending order, each in the slot of its
// quotient or, where that is taken, in the first one free behind. Three bits of a slot tell where:
// occupied (this slot is some fingerprint's quotient), continued (what lies here has the quotient
// of its left neighbour), shifted (it does not lie in the slot of its quotient). The filter is
// exactly the multiset of the fingerprints, hence erase is exact, and its bytes follow from it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/filter/filter_bytes.h"
#include "tamis/filter/filter_options.h"

namespace tamis {

class QuotientFilter {
 public:
  using Options = FilterOptions;
  static constexpr FilterKind kKind = FilterKind::kQuotient;
  static constexpr uint32_t kMaxCopies = 64;

  static Result<QuotientFilter> Create(const Options& options);

  [[nodiscard]] bool Insert(uint64_t hash) { return Add(Find(hash)); }
  // False, and nothing is changed, when the filter does not contain the hash.
  bool Erase(uint64_t hash);
  bool MayContain(uint64_t hash) const { return CopiesOf(Find(hash), 1) != 0; }
  Bitmap MayContain(std::span<const uint64_t> hashes) const;
  // How often the hash is in it, or more by those that share its fingerprint.
  uint32_t Copies(uint64_t hash) const { return CopiesOf(Find(hash), UINT32_MAX); }

  // Afterwards this holds the keys of both; one that is in it `most_copies` times gets no more, and
  // may be erased no more. kInvalidArgument unless both have the same size and seed;
  // kResourceExhausted, and nothing is changed, when they do not fit.
  Status Merge(const QuotientFilter& other, uint32_t most_copies = kMaxCopies + 1);
  // Twice or half the slots, remainders of one bit less or more. kFailedPrecondition, and nothing
  // is changed, when remainders cannot be shorter or longer, or the number of slots is odd;
  // kResourceExhausted when the keys do not fit half the slots.
  Status Grow();
  Status Shrink();
  void Clear();

  struct Fingerprint {
    uint64_t quotient;
    uint64_t remainder;
    friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
  };
  // visit(fingerprint) for each one, in ascending order.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    ForEachStretch([&](const Stretch& stretch) {
      for (const Fingerprint& fingerprint : stretch.fingerprints) visit(fingerprint);
      return true;
    });
  }

  size_t SizeBytes() const { return words_.size_bytes(); }
  uint64_t Count() const { return count_; }  // inserted and not erased
  double Fill() const { return static_cast<double>(count_) / static_cast<double>(slots_); }
  double ExpectedFpr() const;  // from the fill as it is
  uint64_t seed() const { return seed_; }
  uint32_t remainder_bits() const { return remainder_bits_; }

  static uint64_t CapacityFor(size_t size_bytes, double fpr);
  static double FprFor(size_t size_bytes, uint64_t capacity);

  std::string Serialize() const;
  static Result<QuotientFilter> Deserialize(std::string_view bytes,
                                            OpenMode mode = OpenMode::kCopy);

 private:
  // From a slot that is not shifted to the next empty one: what an insert or an erase may move.
  struct Stretch {
    uint64_t begin;
    uint64_t end;
    std::vector<Fingerprint> fingerprints;
  };
  static constexpr uint64_t kTailSlots = 64;  // behind the last quotient

  // REQUIRES: words.size() == WordsFor(...).
  QuotientFilter(uint64_t seed, uint64_t slots, uint32_t remainder_bits, WordArray words)
      : seed_(seed), slots_(slots), remainder_bits_(remainder_bits), words_(std::move(words)) {}
  QuotientFilter(uint64_t seed, uint64_t slots, uint32_t remainder_bits)
      : QuotientFilter(seed, slots, remainder_bits, WordArray(WordsFor(slots, remainder_bits))) {}

  static uint64_t WordsFor(uint64_t slots, uint32_t remainder_bits) {
    return ((slots + kTailSlots) * (remainder_bits + 3) + 63) / 64 + 1;
  }
  uint64_t TotalSlots() const { return slots_ + kTailSlots; }
  Fingerprint Find(uint64_t hash) const;
  uint64_t Load(uint64_t slot) const;
  void Store(uint64_t slot, uint64_t value);
  bool IsEmpty(uint64_t slot) const { return (Load(slot) & 7) == 0; }
  uint32_t CopiesOf(const Fingerprint& fingerprint, uint32_t enough) const;
  uint64_t BeginOfStretch(uint64_t slot) const;
  // REQUIRES: a stretch begins there; of unchecked bytes it may as well be another slot.
  Stretch Read(uint64_t begin) const;
  void Write(const Stretch& stretch);
  // visit(stretch) -> bool for each one, in ascending order, until one says false.
  template <class Visit>
  bool ForEachStretch(Visit&& visit) const {
    for (uint64_t slot = 0; slot < TotalSlots();) {
      if (IsEmpty(slot)) {
        ++slot;
        continue;
      }
      const Stretch stretch = Read(slot);
      if (!visit(stretch)) return false;
      slot = stretch.end;
    }
    return true;
  }
  bool IsFull() const;
  bool IsConsistent() const;
  bool Add(const Fingerprint& fingerprint);

  uint64_t seed_;
  uint64_t slots_;  // quotients
  uint32_t remainder_bits_;
  uint64_t count_ = 0;
  WordArray words_;
};

}  // namespace tamis
