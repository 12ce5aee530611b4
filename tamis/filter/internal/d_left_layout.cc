#include "tamis/filter/internal/d_left_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/filter/internal/d_left_layout.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kDistance = 16;  // keys fetched ahead; each is four to six lines

#if HWY_TARGET == HWY_SCALAR
constexpr uint32_t kCellStride = 8;
constexpr uint32_t kBucketStride = 1;
HWY_INLINE uint64_t Marks(const char* table, const DLeftLayout::Place& place) {
  return DLeftLayout::MayHaveTag(table, place);
}
#else
// Bit 8 j + i: cell i of the place's bucket j has the tag of the remainder.
constexpr uint32_t kCellStride = 1;
constexpr uint32_t kBucketStride = 8;
HWY_INLINE uint64_t Marks(const char* table, const DLeftLayout::Place& place) {
  const hn::FixedTag<uint8_t, 16> d;
  const hn::Half<decltype(d)> half;
  const auto tags = [&](uint32_t j) {
    return hn::LoadU(half, reinterpret_cast<const uint8_t*>(table + place.buckets[j]));
  };
  const auto wanted = hn::Set(d, static_cast<uint8_t>(place.remainder));
  uint16_t low = 0;
  uint16_t high = 0;
  hn::StoreMaskBits(d, hn::Eq(hn::Combine(d, tags(1), tags(0)), wanted),
                    reinterpret_cast<uint8_t*>(&low));
  hn::StoreMaskBits(d, hn::Eq(hn::Combine(d, tags(3), tags(2)), wanted),
                    reinterpret_cast<uint8_t*>(&high));
  return low | uint32_t{high} << 16;
}
#endif

HWY_INLINE bool Holds(const DLeftLayout& layout, const char* table,
                      const DLeftLayout::Place& place) {
  for (uint64_t marks = Marks(table, place); marks != 0; marks &= marks - 1) {
    const auto mark = static_cast<uint32_t>(std::countr_zero(marks));
    const char* bucket = table + place.buckets[mark / kBucketStride % 8];
    if (layout.Holds(bucket, mark / kCellStride % 8, place.remainder)) return true;
  }
  return false;
}

void Find(const DLeftLayout& shared, const char* table, const uint64_t* hashes, size_t n,
          uint64_t* answers) {
  const DLeftLayout layout = shared;  // a copy, whose members no store can change
  DLeftLayout::Place places[kDistance];
  const auto fetch = [&](size_t i) HWY_ATTR {
    DLeftLayout::Place& place = places[i % kDistance];
    place = layout.PlaceOf(layout.ValueOf(hashes[i]));
    layout.Prefetch(table, place);
  };
  for (size_t i = 0; i < n && i < kDistance; ++i) fetch(i);
  for (size_t i = 0; i < n; ++i) {
    answers[i / 64] |= uint64_t{Holds(layout, table, places[i % kDistance])} << (i % 64);
    if (i + kDistance < n) fetch(i + kDistance);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(Find);

void FindInDLeftTable(const DLeftLayout& layout, const char* table, const uint64_t* hashes,
                      size_t n, uint64_t* answers) {
  HWY_DYNAMIC_DISPATCH(Find)(layout, table, hashes, n, answers);
}

}  // namespace tamis
#endif  // HWY_ONCE
