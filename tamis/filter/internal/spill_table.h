// SpillTable: the fingerprints that found no room in their own line, as an exact multiset of
// (line, fingerprint), ordered.
//
// Entries of 32 or 64 bits lie in ascending order, each at or behind the place that its line number
// says: linear probing in order (Amble and Knuth 1974), so that equal multisets are equal bytes.
// Places are the beginnings of cache lines, and their order is that of the line numbers. An entry
// has an upper bit that says it is there, the lowest bits of the line number, and the fingerprint;
// entries lie near their places, so that the lowest bits tell which line is meant.
#pragma once

#include <cstdint>
#include <optional>

#include "tamis/filter/internal/word_array.h"

namespace tamis {

class SpillTable {
 public:
  // Entries of 32 bits up to this width, of 64 beyond.
  static constexpr uint32_t kNarrowFingerprintBits = 14;
  static constexpr uint64_t WordsFor(uint64_t slots, uint32_t fingerprint_bits) {
    return fingerprint_bits <= kNarrowFingerprintBits ? (slots + 1) / 2 : slots;
  }

  SpillTable() = default;
  // REQUIRES: at least kMinWords words, lines >= 1.
  SpillTable(uint64_t lines, uint32_t fingerprint_bits, WordArray words);
  static constexpr uint64_t kMinWords = 24;
  // How many slots behind its home place an entry may lie, at most. So searches stay short even if
  // an attacker chose the keys; and of the lines that can meet in one place, entries of 32 bits
  // have enough bits of the line's number to tell them apart.
  static constexpr uint64_t kMaxDisplacement = 16384;

  uint64_t slots() const { return slots_; }
  const WordArray& words() const { return words_; }
  // Copies what is borrowed, as the first change would.
  void Own() { words_.MutableData(); }
  // From now on entries are changed one by one, so that Contains may run meanwhile: what it says
  // then is for the caller to judge, but it reads nothing else than the table.
  void Share() { shared_ = true; }

  // False, and nothing is changed, when there is no room within reach of its place, or there are
  // `copies` already.
  bool Insert(uint64_t line, uint64_t fingerprint, uint32_t copies);
  bool Erase(uint64_t line, uint64_t fingerprint);
  // Takes the line's least fingerprint out and says whether the line has more.
  std::optional<uint64_t> TakeFirst(uint64_t line, bool* has_more);

  bool Contains(uint64_t line, uint64_t fingerprint) const {
    return Get(LowerBound(line, fingerprint)) == Entry(line, fingerprint);
  }
  bool ContainsLine(uint64_t line) const { return IsOf(Get(LowerBound(line, 0)), line); }
  uint32_t Copies(uint64_t line, uint64_t fingerprint) const {
    const uint64_t entry = Entry(line, fingerprint);
    uint32_t copies = 0;
    for (uint64_t slot = LowerBound(line, fingerprint); Get(slot) == entry; ++slot) ++copies;
    return copies;
  }
  void Prefetch(uint64_t line) const {
    const uint64_t slot = Home(line);
    __builtin_prefetch(words_.data() + (narrow_ ? slot / 2 : slot));
  }

  // visit(fingerprint) for each of the line's, in ascending order.
  template <class Visit>
  void ForEach(uint64_t line, Visit&& visit) const {
    for (uint64_t slot = LowerBound(line, 0); IsOf(Get(slot), line); ++slot) {
      visit(Get(slot) & fingerprint_mask_);
    }
  }

 private:
  using Narrow = uint32_t __attribute__((may_alias));
  using Wide = uint64_t;

  static uint64_t Load(const Narrow* slot) { return __atomic_load_n(slot, __ATOMIC_RELAXED); }
  static uint64_t Load(const Wide* slot) { return __atomic_load_n(slot, __ATOMIC_RELAXED); }
  // use(slots): the slots as what they are, 32 or 64 bits wide.
  template <class Use>
  auto WithSlots(Use&& use) const {
    return narrow_ ? use(reinterpret_cast<const Narrow*>(words_.data()))
                   : use(reinterpret_cast<const Wide*>(words_.data()));
  }
  // Behind the last slot there is nothing.
  uint64_t Get(uint64_t slot) const {
    if (slot >= slots_) return 0;
    return WithSlots([slot](const auto* slots) -> uint64_t { return Load(slots + slot); });
  }
  void Set(uint64_t slot, uint64_t entry);
  // The entries of [from, to) go to the slots from `at` on.
  void Move(uint64_t at, uint64_t from, uint64_t to);

  uint64_t Entry(uint64_t line, uint64_t fingerprint) const {
    return present_ | (line & line_mask_) << fingerprint_bits_ | fingerprint;
  }
  bool IsOf(uint64_t entry, uint64_t line) const {
    return entry >> fingerprint_bits_ == Entry(line, 0) >> fingerprint_bits_;
  }
  // How far `entry` is behind `from`, less than 0 when it is before it. REQUIRES: neither is 0.
  int64_t Distance(uint64_t entry, uint64_t from) const {
    return static_cast<int64_t>((entry - from) << distance_shift_) >> distance_shift_;
  }

  // Where a line's entries would lie if there were no others: a multiple of slots_per_place_.
  uint64_t Home(uint64_t line) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(line) * ratio_ >> 64) *
           slots_per_place_;
  }
  // The first slot from the line's place on whose entry is not less, or is none.
  uint64_t LowerBound(uint64_t line, uint64_t fingerprint) const;
  uint64_t FirstEmpty(uint64_t slot) const;
  // REQUIRES: the entry in the slot is the line's.
  void RemoveAt(uint64_t slot, uint64_t line);

  bool narrow_ = true;
  bool shared_ = false;
  uint32_t fingerprint_bits_ = 0;
  uint32_t slots_per_place_ = 0;
  uint64_t slots_ = 0;
  uint64_t ratio_ = 0;  // places of a line, as a fraction of 2^64
  uint64_t present_ = 0;
  uint64_t line_mask_ = 0;
  uint64_t fingerprint_mask_ = 0;
  uint32_t distance_shift_ = 0;  // above the bits of an entry without present_
  WordArray words_;
};

}  // namespace tamis
