#include "tamis/filter/quotient_line.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/filter/quotient_line.cc"
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

// Map of 112 bits, of 58 or of 30.
template <uint32_t kTagBits>
struct Line;

template <>
struct Line<8> {
  using Tag = uint8_t;
  using Map = unsigned __int128;
  static constexpr QuotientLineShape kShape = kQuotientLineShapes[0];
  static constexpr uint32_t kTagWords = 6;
  static constexpr uint64_t kHighMap = (uint64_t{1} << 48) - 1;

  static HWY_INLINE Map Load(const uint64_t* line) {
    return static_cast<Map>(line[7] & kHighMap) << 64 | line[6];
  }
  static HWY_INLINE void Store(uint64_t* line, Map map) {
    line[6] = static_cast<uint64_t>(map);
    line[7] = (line[7] & ~kHighMap) | (static_cast<uint64_t>(map >> 64) & kHighMap);
  }
  static HWY_INLINE uint32_t LimitGroup(const uint64_t* line) {
    return static_cast<uint8_t>((line[7] >> 56) - 1);
  }
  static HWY_INLINE uint32_t Count(Map map) {
    return std::popcount(static_cast<uint64_t>(map)) +
           std::popcount(static_cast<uint64_t>(map >> 64));
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
  static HWY_INLINE uint32_t Begin(Map map, uint32_t group) {
    if (group == 0) return 0;
    const uint64_t zeros = ~static_cast<uint64_t>(map);
    const uint32_t low = std::popcount(zeros);
    const uint32_t bit = group <= low
                             ? Select(zeros, group - 1)
                             : 64 + Select(~static_cast<uint64_t>(map >> 64), group - 1 - low);
    return bit + 1 - group;
  }
};

template <class Wide, uint32_t kShapeNumber>
struct NarrowMapLine {
  using Tag = Wide;
  using Map = uint64_t;
  static constexpr QuotientLineShape kShape = kQuotientLineShapes[kShapeNumber];
  static constexpr uint32_t kTagWords = 7;
  static constexpr uint64_t kMapMask =
      (uint64_t{1} << (kShape.slots + (1u << kShape.group_bits))) - 1;

  static HWY_INLINE Map Load(const uint64_t* line) { return line[7] & kMapMask; }
  static HWY_INLINE void Store(uint64_t* line, Map map) {
    line[7] = (line[7] & ~kMapMask) | (map & kMapMask);
  }
  static HWY_INLINE uint32_t LimitGroup(const uint64_t* line) {
    return static_cast<uint32_t>(line[7] >> 58) - 1;
  }
  static HWY_INLINE uint32_t Count(Map map) { return std::popcount(map); }
  static HWY_INLINE uint64_t Ones(const uint64_t* line, uint32_t group) { return line[7] >> group; }
  static HWY_INLINE uint32_t Rank(const uint64_t* line, uint32_t slot, uint32_t group) {
    return std::popcount(line[7] << (63 - slot - group));
  }
  static HWY_INLINE uint32_t Begin(Map map, uint32_t group) {
    return group == 0 ? 0 : Select(~map, group - 1) + 1 - group;
  }
};
template <>
struct Line<16> : NarrowMapLine<uint16_t, 1> {};
template <>
struct Line<32> : NarrowMapLine<uint32_t, 2> {};

// Bit i: the tag in slot i is this one.
template <class L>
HWY_INLINE uint64_t Match(const uint64_t* line, uint64_t tag) {
  using T = typename L::Tag;
  const auto* tags = reinterpret_cast<const T*>(line);
  uint64_t bits = 0;
#if HWY_TARGET == HWY_SCALAR
  for (uint32_t i = 0; i < L::kShape.slots; ++i) {
    T here;
    std::memcpy(&here, tags + i, sizeof(here));
    bits |= uint64_t{here == static_cast<T>(tag)} << i;
  }
#else
  const hn::CappedTag<T, 64 / sizeof(T)> d;
  const auto wanted = hn::Set(d, static_cast<T>(tag));
  for (uint32_t i = 0; i < L::kShape.slots; i += hn::Lanes(d)) {
    const auto equal = hn::Eq(hn::LoadU(d, tags + i), wanted);
#if HWY_HAVE_SCALABLE
    uint64_t found = 0;
#else
    // Of the very size that is stored, so that it stays in a register.
    constexpr size_t kBytes = (hn::MaxLanes(d) + 7) / 8;
    std::conditional_t<kBytes == 8, uint64_t,
                       std::conditional_t<kBytes == 4, uint32_t,
                                          std::conditional_t<kBytes == 2, uint16_t, uint8_t>>>
        found = 0;
#endif
    hn::StoreMaskBits(d, equal, reinterpret_cast<uint8_t*>(&found));
    bits |= uint64_t{found} << i;
  }
#endif
  return bits & ((uint64_t{1} << L::kShape.slots) - 1);
}

// The slot of a tag with this fingerprint; kShape.slots when there is none.
template <class L>
HWY_INLINE uint32_t SlotOf(const uint64_t* line, uint64_t fingerprint) {
  const auto group = static_cast<uint32_t>(fingerprint >> L::kShape.tag_bits);
  // Few instructions before the branch, and one that is seldom mispredicted: the processor goes on
  // with the next lookups while it waits for this line.
  uint64_t slots = Match<L>(line, fingerprint) & L::Ones(line, group);
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

template <class L>
typename L::Tag TagAt(const uint64_t* line, uint32_t slot) {
  typename L::Tag tag;
  std::memcpy(&tag, reinterpret_cast<const char*>(line) + slot * sizeof(tag), sizeof(tag));
  return tag;
}

// Of word w, the bytes that stand in the line before byte number `at`.
HWY_INLINE uint64_t BytesBefore(uint32_t at, uint32_t w) {
  const int bytes = std::clamp(static_cast<int>(at) - static_cast<int>(8 * w), 0, 8);
  return bytes == 0 ? 0 : ~uint64_t{0} >> (64 - 8 * bytes);
}

template <uint32_t kTagBits>
Placed Insert(uint64_t* line, uint64_t fingerprint, uint32_t copies) {
  using L = Line<kTagBits>;
  using Map = typename L::Map;
  const auto group = static_cast<uint32_t>(fingerprint >> kTagBits);
  const auto tag = static_cast<typename L::Tag>(fingerprint);
  const Map map = L::Load(line);
  const uint32_t count = L::Count(map);
  if (count >= L::kShape.slots) return Placed::kFull;
  // The minimum keeps bytes that were never checked from leading out of the line.
  const uint32_t begin = std::min(L::Begin(map, group), count);
  uint32_t slot = begin;
  uint32_t equal = 0;
  while (slot < count && (map >> (slot + group) & 1) != 0) {
    const auto here = TagAt<L>(line, slot);
    if (here > tag) break;
    equal += here == tag;
    ++slot;
  }
  if (equal >= copies) return Placed::kTooManyCopies;

  const Map below = (static_cast<Map>(1) << (slot + group)) - 1;
  L::Store(line, (map & below) | (below + 1) | (map & ~below) << 1);
  for (uint32_t w = L::kTagWords; w-- > 0;) {
    const uint64_t kept = BytesBefore(slot * (kTagBits / 8), w);
    const uint64_t previous = w > 0 ? line[w - 1] >> (64 - kTagBits) : 0;
    line[w] = (line[w] & kept) | ((line[w] << kTagBits | previous) & ~kept);
  }
  std::memcpy(reinterpret_cast<char*>(line) + slot * sizeof(tag), &tag, sizeof(tag));
  return Placed::kDone;
}

template <uint32_t kTagBits>
bool Erase(uint64_t* line, uint64_t fingerprint) {
  using L = Line<kTagBits>;
  using Map = typename L::Map;
  const auto group = static_cast<uint32_t>(fingerprint >> kTagBits);
  const uint32_t slot = SlotOf<L>(line, fingerprint);
  if (slot == L::kShape.slots) return false;
  const Map map = L::Load(line);
  const Map below = (static_cast<Map>(1) << (slot + group)) - 1;
  L::Store(line, (map & below) | (map >> 1 & ~below));
  // All words, whatever the slot: a loop that begins at it is mispredicted.
  for (uint32_t w = 0; w < L::kTagWords; ++w) {
    const uint64_t kept = BytesBefore(slot * (kTagBits / 8), w);
    const uint64_t next = w + 1 < L::kTagWords ? line[w + 1] << (64 - kTagBits) : 0;
    line[w] = (line[w] & kept) | ((line[w] >> kTagBits | next) & ~kept);
  }
  return true;
}

template <uint32_t kTagBits>
void FindMany(const QuotientLineSet& lines, const uint64_t* hashes, size_t n, uint64_t* answers,
              std::vector<uint32_t>* perhaps_spilled) {
  QuotientPlace places[kDistance];
  for (size_t i = 0; i < n && i < kDistance; ++i) {
    places[i] = lines.Find(hashes[i]);
    __builtin_prefetch(lines.Line(places[i].line));
  }
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    const QuotientPlace here = places[next];
    if (i + kDistance < n) {
      places[next] = lines.Find(hashes[i + kDistance]);
      __builtin_prefetch(lines.Line(places[next].line));
    }
    if (++next == kDistance) next = 0;
    const Found found = FindIn<Line<kTagBits>>(lines.Line(here.line), here.fingerprint);
    answers[i / 64] |= uint64_t{found == Found::kHere} << (i % 64);
    if (found == Found::kPerhapsSpilled) perhaps_spilled->push_back(static_cast<uint32_t>(i));
  }
}

template <uint32_t kTagBits>
QuotientLineFunctions FunctionsOf() {
  return {Find<kTagBits>, Insert<kTagBits>, Erase<kTagBits>, FindMany<kTagBits>};
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

void QuotientLineView::SetSpilled(const QuotientLineShape& shape, uint64_t* line, bool spilled) {
  const uint32_t shift = shape.tag_bits == 8 ? 56 : 58;
  const uint64_t limit = spilled ? (QuotientLineView(shape, line).Last() >> shape.tag_bits) + 1 : 0;
  line[7] = (line[7] & ((uint64_t{1} << shift) - 1)) | limit << shift;
}

}  // namespace tamis
#endif  // HWY_ONCE
