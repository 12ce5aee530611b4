#include "tamis/filter/counter_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/filter/counter_block.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<uint64_t, kCounterBlockWords>;
using V = hn::Vec<D>;

// Salts as the low halves of 64-bit lanes.
[[maybe_unused]] constexpr auto kWideSalts = [] {
  std::array<uint64_t, kCounterBlockWords> salts{};
  for (uint32_t i = 0; i < salts.size(); ++i) salts[i] = kLaneSalts[i];
  return salts;
}();

V Shifts(D d, uint32_t low, uint32_t lane) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, uint64_t{CounterBlockShift(low, lane)});
#else
  const hn::Repartition<uint32_t, D> d32;
  const V product = hn::MulEven(hn::BitCast(d32, hn::Set(d, uint64_t{low})),
                                hn::BitCast(d32, hn::LoadU(d, kWideSalts.data() + lane)));
  return hn::And(hn::ShiftRight<26>(product), hn::Set(d, uint64_t{0x3c}));
#endif
}

V Counters(D d, V words, V shifts) {
  return hn::And(hn::Shr(words, shifts), hn::Set(d, uint64_t{15}));
}

bool TestCounters(const uint64_t* block, uint32_t low) {
  const D d;
  for (uint32_t l = 0; l < kCounterBlockWords; l += hn::Lanes(d)) {
    const V counters = Counters(d, hn::LoadU(d, block + l), Shifts(d, low, l));
    if (!hn::AllFalse(d, hn::Eq(counters, hn::Zero(d)))) return false;
  }
  return true;
}

// Moves every counter of the key by one, up or down. Those at 15 stay there.
template <bool kUp>
CounterChange MoveCounters(uint64_t* block, uint32_t low) {
  const D d;
  CounterChange change;
  for (uint32_t l = 0; l < kCounterBlockWords; l += hn::Lanes(d)) {
    const V words = hn::LoadU(d, block + l);
    const V shifts = Shifts(d, low, l);
    const V counters = Counters(d, words, shifts);
    const auto is = [&](uint64_t value) { return hn::Eq(counters, hn::Set(d, value)); };
    const V one = hn::Shl(hn::IfThenZeroElse(is(15), hn::Set(d, uint64_t{1})), shifts);
    hn::StoreU(kUp ? hn::Add(words, one) : hn::Sub(words, one), d, block + l);
    change.zeros += hn::CountTrue(d, is(kUp ? 0 : 1));
    change.sticky += hn::CountTrue(d, is(kUp ? 14 : 15));
  }
  return change;
}

CounterBlockFunctions Functions() {
  return {TestCounters, MoveCounters<true>, MoveCounters<false>};
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(Functions);

CounterBlockFunctions CounterBlockFunctions::ForThisProcessor() {
  return HWY_DYNAMIC_DISPATCH(Functions)();
}

}  // namespace tamis
#endif  // HWY_ONCE
