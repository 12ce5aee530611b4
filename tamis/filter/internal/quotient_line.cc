#include "tamis/filter/internal/quotient_line.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tamis/base/lookup_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/filter/internal/quotient_line.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Found = QuotientLineFunctions::Found;
using Placed = QuotientLineFunctions::Placed;

constexpr size_t kDistance = 24;  // lines fetched ahead

// The place of the 1 that has `rank` ones below it; 64 when there is none.
HWY_INLINE uint32_t Select(uint64_t word, uint32_t rank) {
#if defined(__BMI2__) || HWY_TARGET <= HWY_AVX2
#if HWY_ARCH_X86
  return static_cast<uint32_t>(_tzcnt_u64(_pdep_u64(uint64_t{1} << rank, word)));
#endif
#endif
  for (; rank > 0 && word != 0; --rank) word &= word - 1;
  return word == 0 ? 64 : std::countr_zero(word);
}

// 1 in the lowest n places.
HWY_INLINE uint64_t LowBits(uint32_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

// Map of 112 bits, of 58 or of 30. None of its functions branches: what they would branch on is as
// random as the keys.
template <uint32_t kTagBits>
struct Line;

template <>
struct Line<8> {
  using Tag = uint8_t;
  static constexpr QuotientLineShape kShape = kQuotientLineShapes[0];
  static constexpr uint32_t kTagWords = 6;
  static constexpr uint64_t kHighMap = (uint64_t{1} << 48) - 1;

  static HWY_INLINE uint32_t LimitGroup(const uint64_t* line) {
    return static_cast<uint8_t>((line[7] >> 56) - 1);
  }
  static HWY_INLINE bool HasSpilled(const uint64_t* line) { return line[7] >> 56 != 0; }
  static HWY_INLINE uint32_t Count(const uint64_t* line) {
    return std::popcount(line[6]) + std::popcount(line[7] & kHighMap);
  }
  // Bit i: the map has a 1 where it stands for slot i, if that is one of the group's.
  static HWY_INLINE uint64_t Ones(const uint64_t* line, uint32_t group) {
    return line[6] >> group | line[7] << 1 << (63 - group);
  }
  // How many tags there are up to that place.
  static HWY_INLINE uint32_t Rank(const uint64_t* line, uint32_t slot, uint32_t group) {
    const uint32_t bit = slot + group;
    const uint32_t before = bit < 64 ? 0 : std::popcount(line[6]);
    return before + std::popcount(line[6 + bit / 64] << (63 - bit % 64));
  }
  // The first slot that does not belong to a group before this one.
  static HWY_INLINE uint32_t Begin(const uint64_t* line, uint32_t group) {
    // The ends of the groups, that of a group before the first one in front.
    const uint64_t low = ~(line[6] << 1);
    const uint64_t high = ~(line[7] << 1 | line[6] >> 63);
    const uint32_t in_low = std::popcount(low);
    const bool is_low = group < in_low;
    const uint32_t bit = Select(is_low ? low : high, is_low ? group : group - in_low);
    return bit + (is_low ? 0 : 64) - group;
  }
  // Puts a 1 before the map's bit of this number, or takes that bit away.
  static HWY_INLINE void InsertOne(uint64_t* line, uint32_t bit) {
    const uint64_t low = LowBits(bit);
    const uint64_t high = LowBits(std::max(bit, 64u) - 64);
    const uint64_t moved = line[6] & ~low;
    const uint64_t map = line[7] & kHighMap;
    const uint64_t one = uint64_t{1} << bit % 64;
    line[6] = (line[6] & low) | moved << 1 | (bit < 64 ? one : 0);
    line[7] = (line[7] & ~kHighMap) |
              (((map & high) | (map & ~high) << 1 | moved >> 63 | (bit < 64 ? 0 : one)) & kHighMap);
  }
  static HWY_INLINE void RemoveBit(uint64_t* line, uint32_t bit) {
    const uint64_t low = LowBits(bit);
    const uint64_t high = LowBits(std::max(bit, 64u) - 64);
    const uint64_t map = line[7] & kHighMap;
    line[6] = (line[6] & low) | ((line[6] >> 1 | map << 63) & ~low);
    line[7] = (line[7] & ~kHighMap) | (map & high) | (map >> 1 & ~high);
  }
};

template <class Wide, uint32_t kShapeNumber>
struct NarrowMapLine {
  using Tag = Wide;
  static constexpr QuotientLineShape kShape = kQuotientLineShapes[kShapeNumber];
  static constexpr uint32_t kTagWords = 7;
  static constexpr uint64_t kMap = (uint64_t{1} << (kShape.slots + (1u << kShape.group_bits))) - 1;

  static HWY_INLINE uint32_t LimitGroup(const uint64_t* line) {
    return static_cast<uint32_t>(line[7] >> 58) - 1;
  }
  static HWY_INLINE bool HasSpilled(const uint64_t* line) { return line[7] >> 58 != 0; }
  static HWY_INLINE uint32_t Count(const uint64_t* line) { return std::popcount(line[7] & kMap); }
  static HWY_INLINE uint64_t Ones(const uint64_t* line, uint32_t group) { return line[7] >> group; }
  static HWY_INLINE uint32_t Rank(const uint64_t* line, uint32_t slot, uint32_t group) {
    return std::popcount(line[7] << (63 - slot - group));
  }
  static HWY_INLINE uint32_t Begin(const uint64_t* line, uint32_t group) {
    return Select(~(line[7] << 1), group) - group;
  }
  static HWY_INLINE void InsertOne(uint64_t* line, uint32_t bit) {
    const uint64_t low = LowBits(bit);
    const uint64_t map = line[7] & kMap;
    line[7] = (line[7] & ~kMap) | (((map & low) | (map & ~low) << 1 | (low + 1)) & kMap);
  }
  static HWY_INLINE void RemoveBit(uint64_t* line, uint32_t bit) {
    const uint64_t low = LowBits(bit);
    const uint64_t map = line[7] & kMap;
    line[7] = (line[7] & ~kMap) | (map & low) | (map >> 1 & ~low);
  }
};
template <>
struct Line<16> : NarrowMapLine<uint16_t, 1> {};
template <>
struct Line<32> : NarrowMapLine<uint32_t, 2> {};

// Bit i: compare(the tag in slot i, this one).
template <class L, class Compare>
HWY_INLINE uint64_t Match(const uint64_t* line, uint64_t tag, Compare&& compare) {
  using T = typename L::Tag;
  const auto* tags = reinterpret_cast<const T*>(line);
  uint64_t bits = 0;
#if HWY_TARGET == HWY_SCALAR
  const hn::CappedTag<T, 1> d;
#else
  const hn::CappedTag<T, 64 / sizeof(T)> d;
#endif
  const auto wanted = hn::Set(d, static_cast<T>(tag));
  for (uint32_t i = 0; i < L::kShape.slots; i += hn::Lanes(d)) {
    const auto matches = compare(hn::LoadU(d, tags + i), wanted);
#if HWY_HAVE_SCALABLE
    uint64_t found = 0;
#else
    // The exact size that is stored, so that it stays in a register.
    constexpr size_t kBytes = (hn::MaxLanes(d) + 7) / 8;
    std::conditional_t<kBytes == 8, uint64_t,
                       std::conditional_t<kBytes == 4, uint32_t,
                                          std::conditional_t<kBytes == 2, uint16_t, uint8_t>>>
        found = 0;
#endif
    hn::StoreMaskBits(d, matches, reinterpret_cast<uint8_t*>(&found));
    bits |= uint64_t{found} << i;
  }
  return bits & ((uint64_t{1} << L::kShape.slots) - 1);
}

template <class L>
HWY_INLINE uint64_t MatchEqual(const uint64_t* line, uint64_t tag) {
  return Match<L>(line, tag, [](auto here, auto wanted) { return hn::Eq(here, wanted); });
}

// The slot of a tag with this fingerprint; kShape.slots when there is none.
template <class L>
HWY_INLINE uint32_t SlotOf(const uint64_t* line, uint64_t fingerprint) {
  const auto group = static_cast<uint32_t>(fingerprint >> L::kShape.tag_bits);
  // Few instructions before the branch, and one that is seldom mispredicted: the processor goes on
  // with the next lookups while it waits for this line.
  uint64_t slots = MatchEqual<L>(line, fingerprint) & L::Ones(line, group);
  for (; slots != 0; slots &= slots - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(slots));
    if (L::Rank(line, slot, group) == slot + 1) return slot;
  }
  return L::kShape.slots;
}

template <class L>
HWY_INLINE Found FindIn(const uint64_t* line, uint64_t fingerprint) {
  if (SlotOf<L>(line, fingerprint) < L::kShape.slots) return Found::kHere;
  const auto group = static_cast<uint32_t>(fingerprint >> L::kShape.tag_bits);
  return group >= L::LimitGroup(line) ? Found::kPerhapsSpilled : Found::kAbsent;
}

template <uint32_t kTagBits>
Found Find(const uint64_t* line, uint64_t fingerprint) {
  return FindIn<Line<kTagBits>>(line, fingerprint);
}

// Moves the tags from this slot on to the next slot each, or back. The contents of the slot that
// opens are undefined.
template <class L, bool kOpen>
HWY_INLINE void MoveTags(uint64_t* line, uint32_t slot) {
  constexpr uint32_t kSize = sizeof(typename L::Tag);
  auto* const bytes = reinterpret_cast<uint8_t*>(line);
  const uint32_t from = slot * kSize;
#if HWY_TARGET == HWY_SCALAR
  constexpr uint32_t kEnd = L::kShape.slots * kSize;
  if constexpr (kOpen) {
    std::memmove(bytes + from + kSize, bytes + from, kEnd - from - kSize);
  } else {
    std::memmove(bytes + from, bytes + from + kSize, kEnd - from - kSize);
    std::memset(bytes + kEnd - kSize, 0, kSize);
  }
#else
  const hn::CappedTag<uint8_t, 16> d;
  const auto first = hn::Set(d, static_cast<uint8_t>(from));
  const auto v0 = hn::LoadU(d, bytes);
  const auto v1 = hn::LoadU(d, bytes + 16);
  const auto v2 = hn::LoadU(d, bytes + 32);
  auto m0 = v0;
  auto m1 = v1;
  auto m2 = v2;
  uint64_t word6 = line[6];
  if constexpr (kOpen) {
    m0 = hn::ShiftLeftBytes<kSize>(d, v0);
    m1 = hn::LoadU(d, bytes + 16 - kSize);
    m2 = hn::LoadU(d, bytes + 32 - kSize);
    word6 = word6 << 8 * kSize | line[5] >> (64 - 8 * kSize);
  } else {
    m0 = hn::LoadU(d, bytes + kSize);
    m1 = hn::LoadU(d, bytes + 16 + kSize);
    m2 = L::kTagWords == 6 ? hn::ShiftRightBytes<kSize>(d, v2) : hn::LoadU(d, bytes + 32 + kSize);
    word6 >>= 8 * kSize;
  }
  if constexpr (L::kTagWords == 7) {
    const uint64_t kept = LowBits(8 * (std::clamp(from, 48u, 56u) - 48));
    line[6] = (line[6] & kept) | (word6 & ~kept);
  }
  hn::StoreU(hn::IfThenElse(hn::Lt(hn::Iota(d, 0), first), v0, m0), d, bytes);
  hn::StoreU(hn::IfThenElse(hn::Lt(hn::Iota(d, 16), first), v1, m1), d, bytes + 16);
  hn::StoreU(hn::IfThenElse(hn::Lt(hn::Iota(d, 32), first), v2, m2), d, bytes + 32);
#endif
}

// The slots of a group, of a line that has `count` tags.
template <class L>
struct GroupSlots {
  HWY_INLINE GroupSlots(const uint64_t* line, uint32_t group, uint32_t count)
      // The minimum keeps bytes that were never checked from leading out of the line.
      : begin(std::min(L::Begin(line, group), count)),
        bits(LowBits(std::countr_one(L::Ones(line, group) >> begin)) << begin) {}

  uint32_t begin;
  uint64_t bits;
};

template <uint32_t kTagBits>
uint32_t Copies(const uint64_t* line, uint64_t fingerprint) {
  using L = Line<kTagBits>;
  const uint64_t equal = MatchEqual<L>(line, fingerprint);
  if (equal == 0) return 0;
  const auto group = static_cast<uint32_t>(fingerprint >> kTagBits);
  const uint32_t count = std::min(L::Count(line), L::kShape.slots);
  return static_cast<uint32_t>(std::popcount(equal & GroupSlots<L>(line, group, count).bits));
}

template <class L>
HWY_INLINE Placed InsertIn(uint64_t* line, uint64_t fingerprint, uint32_t copies) {
  const auto group = static_cast<uint32_t>(fingerprint >> L::kShape.tag_bits);
  const auto tag = static_cast<typename L::Tag>(fingerprint);
  const uint32_t count = L::Count(line);
  if (count >= L::kShape.slots) return Placed::kFull;
  const auto [begin, in_group] = GroupSlots<L>(line, group, count);
  const uint64_t equal = MatchEqual<L>(line, tag) & in_group;
  if (equal != 0 && static_cast<uint32_t>(std::popcount(equal)) >= copies) {
    return Placed::kTooManyCopies;
  }
  const uint64_t less =
      Match<L>(line, tag, [](auto here, auto wanted) { return hn::Lt(here, wanted); });
  const uint32_t slot = std::min<uint32_t>(begin + std::popcount(less & in_group), count);
  MoveTags<L, true>(line, slot);
  std::memcpy(reinterpret_cast<char*>(line) + slot * sizeof(tag), &tag, sizeof(tag));
  L::InsertOne(line, slot + group);
  return Placed::kDone;
}

template <uint32_t kTagBits>
Placed Insert(uint64_t* line, uint64_t fingerprint, uint32_t copies) {
  return InsertIn<Line<kTagBits>>(line, fingerprint, copies);
}

template <class L>
HWY_INLINE bool EraseIn(uint64_t* line, uint64_t fingerprint) {
  const auto group = static_cast<uint32_t>(fingerprint >> L::kShape.tag_bits);
  const uint32_t slot = SlotOf<L>(line, fingerprint);
  if (slot == L::kShape.slots) return false;
  MoveTags<L, false>(line, slot);
  L::RemoveBit(line, slot + group);
  return true;
}

template <uint32_t kTagBits>
bool Erase(uint64_t* line, uint64_t fingerprint) {
  return EraseIn<Line<kTagBits>>(line, fingerprint);
}

// use(i, line, fingerprint) for each hash in turn, its line fetched ahead for reading or writing.
template <int kWrite, class Use>
HWY_INLINE void ForEachLine(const QuotientLineSet& lines, std::span<const uint64_t> hashes,
                            Use&& use) {
  const size_t n = hashes.size();
  QuotientPlace places[kDistance];
  const auto fetch = [&](size_t slot, uint64_t hash) HWY_ATTR {
    places[slot] = lines.Find(hash);
    __builtin_prefetch(lines.Line(places[slot].line), kWrite);
  };
  for (size_t i = 0; i < std::min(n, kDistance); ++i) fetch(i, hashes[i]);
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    const QuotientPlace here = places[next];
    if (i + kDistance < n) fetch(next, hashes[i + kDistance]);
    if (++next == kDistance) next = 0;
    use(i, here);
  }
}

template <uint32_t kTagBits>
void FindMany(const QuotientLineSet& lines, std::span<const uint64_t> hashes, uint64_t* answers,
              std::vector<uint32_t>* perhaps_spilled) {
  ForEachLine<0>(lines, hashes, [&](size_t i, const QuotientPlace& here) HWY_ATTR {
    const Found found = FindIn<Line<kTagBits>>(lines.Line(here.line), here.fingerprint);
    answers[i / 64] |= uint64_t{found == Found::kHere} << (i % 64);
    if (found == Found::kPerhapsSpilled) perhaps_spilled->push_back(static_cast<uint32_t>(i));
  });
}

template <uint32_t kTagBits>
void InsertMany(const QuotientLineSet& lines, uint64_t* words, std::span<const uint64_t> hashes,
                uint32_t copies, uint64_t* answers, std::vector<uint32_t>* full) {
  ForEachLine<1>(lines, hashes, [&](size_t i, const QuotientPlace& here) HWY_ATTR {
    uint64_t* line = words + here.line * kQuotientLineWords;
    const Placed placed = InsertIn<Line<kTagBits>>(line, here.fingerprint, copies);
    answers[i / 64] |= uint64_t{placed == Placed::kDone} << (i % 64);
    if (placed == Placed::kFull) full->push_back(static_cast<uint32_t>(i));
  });
}

template <uint32_t kTagBits>
void EraseMany(const QuotientLineSet& lines, uint64_t* words, std::span<const uint64_t> hashes,
               uint64_t* answers, std::vector<uint32_t>* spilled) {
  using L = Line<kTagBits>;
  ForEachLine<1>(lines, hashes, [&](size_t i, const QuotientPlace& here) HWY_ATTR {
    uint64_t* line = words + here.line * kQuotientLineWords;
    answers[i / 64] |= uint64_t{EraseIn<L>(line, here.fingerprint)} << (i % 64);
    if (L::HasSpilled(line)) spilled->push_back(static_cast<uint32_t>(i));
  });
}

template <uint32_t kTagBits>
QuotientLineFunctions FunctionsOf() {
  return {Find<kTagBits>,     Insert<kTagBits>,     Erase<kTagBits>,    Copies<kTagBits>,
          FindMany<kTagBits>, InsertMany<kTagBits>, EraseMany<kTagBits>};
}

QuotientLineFunctions Functions(uint32_t tag_bits) {
  return tag_bits == 8 ? FunctionsOf<8>() : tag_bits == 16 ? FunctionsOf<16>() : FunctionsOf<32>();
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(Functions);

QuotientLineFunctions QuotientLineFunctions::For(const QuotientLineShape& shape) {
  return HWY_DYNAMIC_DISPATCH(Functions)(shape.tag_bits);
}

QuotientLineView::Map QuotientLineView::Bits() const {
  if (shape_.tag_bits == 8) {
    return static_cast<Map>(line_[7] & ((uint64_t{1} << 48) - 1)) << 64 | line_[6];
  }
  return line_[7] & ((uint64_t{1} << (shape_.slots + shape_.groups())) - 1);
}

uint64_t QuotientLineView::Tag(uint32_t slot) const {
  const uint32_t bit = slot * shape_.tag_bits;
  return line_[bit / 64] >> (bit % 64) & ((uint64_t{1} << shape_.tag_bits) - 1);
}

std::vector<uint64_t> QuotientLineView::Fingerprints() const {
  std::vector<uint64_t> fingerprints;
  uint64_t group = 0;
  for (Map bits = Bits(); bits != 0 && fingerprints.size() < shape_.slots; bits >>= 1) {
    if ((bits & 1) == 0) {
      ++group;
    } else {
      const auto slot = static_cast<uint32_t>(fingerprints.size());
      fingerprints.push_back(group << shape_.tag_bits | Tag(slot));
    }
  }
  return fingerprints;
}

uint32_t QuotientLineView::Count() const {
  const Map bits = Bits();
  return std::popcount(static_cast<uint64_t>(bits)) +
         std::popcount(static_cast<uint64_t>(bits >> 64));
}

uint64_t QuotientLineView::Last() const {
  const Map bits = Bits();
  const auto high = static_cast<uint64_t>(bits >> 64);
  const uint32_t last =
      high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(static_cast<uint64_t>(bits));
  const uint64_t group = (last + 1 - shape_.slots) & (shape_.groups() - 1);
  return group << shape_.tag_bits | Tag(shape_.slots - 1);
}

uint32_t QuotientLineView::CopiesOfLast() const {
  const Map bits = Bits();
  uint32_t copies = 0;
  // From its bit downwards: a 1 for each other tag of its group.
  for (uint64_t bit = (Last() >> shape_.tag_bits) + shape_.slots - 1;
       copies < shape_.slots && (bits >> bit & 1) != 0 &&
       Tag(shape_.slots - 1 - copies) == Tag(shape_.slots - 1);
       --bit) {
    ++copies;
  }
  return copies;
}

void QuotientLineView::SetSpilled(const QuotientLineShape& shape, uint64_t* line, bool spilled) {
  const uint32_t shift = shape.tag_bits == 8 ? 56 : 58;
  const uint64_t limit = spilled ? (QuotientLineView(shape, line).Last() >> shape.tag_bits) + 1 : 0;
  line[7] = (line[7] & ((uint64_t{1} << shift) - 1)) | limit << shift;
}

}  // namespace tamis
#endif  // HWY_ONCE
