#include "tamis/routing/transpose_bits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/routing/transpose_bits.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One step of Hacker's Delight, section 7-3, for bit 0 lowest: swaps the halves of side kHalf that
// lie across the diagonal, in all squares.
template <int kHalf>
void SwapHalves(uint64_t* words, uint64_t mask_bits) {
  const hn::CappedTag<uint64_t, BitSquares::kSquares> d;
  constexpr size_t kSide = BitSquares::kSide, kSquares = BitSquares::kSquares;
  const size_t lanes = hn::Lanes(d);
  const auto mask = hn::Set(d, mask_bits);
  for (size_t base = 0; base < kSide; base += 2 * kHalf) {
    for (size_t line = base; line < base + kHalf; ++line) {
      uint64_t* upper = words + line * kSquares;
      uint64_t* lower = upper + kHalf * kSquares;
      for (size_t i = 0; i < kSquares; i += lanes) {
        const auto a = hn::Load(d, upper + i);
        const auto b = hn::Load(d, lower + i);
        const auto t = hn::And(hn::Xor(hn::ShiftRight<kHalf>(a), b), mask);
        hn::Store(hn::Xor(a, hn::ShiftLeft<kHalf>(t)), d, upper + i);
        hn::Store(hn::Xor(b, t), d, lower + i);
      }
    }
  }
}

void TransposeVector(uint64_t* words) {
  SwapHalves<32>(words, 0x00000000ffffffff);
  SwapHalves<16>(words, 0x0000ffff0000ffff);
  SwapHalves<8>(words, 0x00ff00ff00ff00ff);
  SwapHalves<4>(words, 0x0f0f0f0f0f0f0f0f);
  SwapHalves<2>(words, 0x3333333333333333);
  SwapHalves<1>(words, 0x5555555555555555);
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(TransposeVector);

void TransposeBits(BitSquares* squares) {
  HWY_DYNAMIC_DISPATCH(TransposeVector)(squares->lines[0].data());
}

}  // namespace tamis
#endif  // HWY_ONCE
