#include "tamis/routing/within.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/routing/within.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void FindWithinVector(const uint64_t* min, const uint64_t* max, size_t words, uint64_t low,
                      uint64_t high, uint64_t* inside, uint64_t* edge) {
  const hn::CappedTag<uint64_t, 8> d;
  const size_t lanes = hn::Lanes(d);
  const auto lows = hn::Set(d, low);
  const auto highs = hn::Set(d, high);
  uint8_t bytes[hn::MaxLanes(d) / 8 + 8];
  const auto bits_of = [&](auto mask) {
    (void)hn::StoreMaskBits(d, mask, bytes);
    return static_cast<uint64_t>(bytes[0]);  // at most 8 lanes
  };
  for (size_t word = 0; word < words; ++word, min += 64, max += 64) {
    uint64_t sure = 0, outside = 0;
    for (size_t i = 0; i < 64; i += lanes) {
      const auto least = hn::LoadU(d, min + i);
      const auto most = hn::LoadU(d, max + i);
      sure |= bits_of(hn::And(hn::Gt(most, lows), hn::Lt(least, highs))) << i;
      outside |= bits_of(hn::Or(hn::Lt(most, lows), hn::Gt(least, highs))) << i;
    }
    inside[word] = sure;
    edge[word] = ~(sure | outside);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(FindWithinVector);

void FindWithin(const uint64_t* min, const uint64_t* max, size_t words, uint64_t low, uint64_t high,
                uint64_t* inside, uint64_t* edge) {
  HWY_DYNAMIC_DISPATCH(FindWithinVector)(min, max, words, low, high, inside, edge);
}

void FindWithinScalar(const uint64_t* min, const uint64_t* max, size_t words, uint64_t low,
                      uint64_t high, uint64_t* inside, uint64_t* edge) {
  for (size_t word = 0; word < words; ++word) {
    inside[word] = edge[word] = 0;
    for (size_t i = 0; i < 64; ++i, ++min, ++max) {
      const bool sure = *max > low && *min < high;
      const bool outside = *max < low || *min > high;
      inside[word] |= uint64_t{sure} << i;
      edge[word] |= uint64_t{!sure && !outside} << i;
    }
  }
}

}  // namespace tamis
#endif  // HWY_ONCE
