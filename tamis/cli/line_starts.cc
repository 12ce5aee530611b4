#include "tamis/cli/line_starts.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/cli/line_starts.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Bit i: text[i] is the delimiter.
inline uint64_t DelimitersOf64(const char* text, char delimiter) {
  const hn::CappedTag<uint8_t, 64> d;
  uint64_t bits = 0;
  if constexpr (hn::MaxLanes(d) < 8) {
    for (size_t i = 0; i < 64; ++i) bits |= uint64_t{text[i] == delimiter} << i;
  } else {
    const auto wanted = hn::Set(d, static_cast<uint8_t>(delimiter));
    for (size_t i = 0; i < 64; i += hn::Lanes(d)) {
      const auto bytes = hn::LoadU(d, reinterpret_cast<const uint8_t*>(text) + i);
      hn::StoreMaskBits(d, hn::Eq(bytes, wanted), reinterpret_cast<uint8_t*>(&bits) + i / 8);
    }
  }
  return bits;
}

size_t Find(const char* text, size_t begin, size_t end, char delimiter, uint32_t* starts) {
  const uint32_t* const first = starts;
  for (size_t at = begin; at < end; at += 64) {
    uint64_t bits = DelimitersOf64(text + at, delimiter);
    if (end - at < 64) bits &= (uint64_t{1} << (end - at)) - 1;
    const int found = std::popcount(bits);
    // Eight at a time: how many there are is hard to foresee, whether there are more than eight is
    // not. Positions after the last one are overwritten by the next.
    for (int done = 0; done < found; done += 8) {
      for (int i = done; i < done + 8; ++i) {
        starts[i] = static_cast<uint32_t>(at + std::countr_zero(bits) + 1);  // 64 of no bits
        bits &= bits - 1;
      }
    }
    starts += found;
  }
  return starts - first;
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(Find);

size_t FindLineStarts(const char* text, size_t begin, size_t end, char delimiter,
                      uint32_t* starts) {
  return HWY_DYNAMIC_DISPATCH(Find)(text, begin, end, delimiter, starts);
}

}  // namespace tamis
#endif  // HWY_ONCE
