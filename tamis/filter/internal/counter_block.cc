#include "tamis/filter/internal/counter_block.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/filter/internal/counter_block.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kDistance = 24;  // blocks fetched ahead; each is one line
template <class Word>
[[maybe_unused]] constexpr int kForWriting = !std::is_const_v<Word>;

using D = hn::CappedTag<uint64_t, kCounterBlockWords>;
using V = hn::Vec<D>;

// Salts as the low halves of 64-bit lanes.
[[maybe_unused]] constexpr auto kWideSalts = [] {
  std::array<uint64_t, kCounterBlockWords> salts{};
  for (uint32_t i = 0; i < salts.size(); ++i) salts[i] = kLaneSalts[i];
  return salts;
}();

HWY_INLINE V Shifts(D d, uint32_t low, uint32_t lane) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, uint64_t{CounterBlockShift(low, lane)});
#else
  const hn::Repartition<uint32_t, D> d32;
  const V product = hn::MulEven(hn::BitCast(d32, hn::Set(d, uint64_t{low})),
                                hn::BitCast(d32, hn::LoadU(d, kWideSalts.data() + lane)));
  return hn::And(hn::ShiftRight<26>(product), hn::Set(d, uint64_t{0x3c}));
#endif
}

HWY_INLINE V Counters(D d, V words, V shifts) {
  return hn::And(hn::Shr(words, shifts), hn::Set(d, uint64_t{15}));
}

HWY_INLINE bool TestCounters(const uint64_t* block, uint32_t low) {
  const D d;
  for (uint32_t l = 0; l < kCounterBlockWords; l += hn::Lanes(d)) {
    const V counters = Counters(d, hn::LoadU(d, block + l), Shifts(d, low, l));
    if (!hn::AllFalse(d, hn::Eq(counters, hn::Zero(d)))) return false;
  }
  return true;
}

// Moves every counter of the key by one, up or down. A counter at 15 stays there.
template <bool kUp>
HWY_INLINE void MoveCounters(uint64_t* block, uint32_t low, CounterChange* change) {
  const D d;
  for (uint32_t l = 0; l < kCounterBlockWords; l += hn::Lanes(d)) {
    const V words = hn::LoadU(d, block + l);
    const V shifts = Shifts(d, low, l);
    const V counters = Counters(d, words, shifts);
    const auto is = [&](uint64_t value) HWY_ATTR { return hn::Eq(counters, hn::Set(d, value)); };
    const V one = hn::Shl(hn::IfThenZeroElse(is(15), hn::Set(d, uint64_t{1})), shifts);
    hn::StoreU(kUp ? hn::Add(words, one) : hn::Sub(words, one), d, block + l);
    change->zeros += hn::CountTrue(d, is(kUp ? 0 : 1));
    change->sticky += hn::CountTrue(d, is(kUp ? 14 : 15));
  }
}

bool Test(const uint64_t* block, uint32_t low) { return TestCounters(block, low); }
void Raise(uint64_t* block, uint32_t low, CounterChange* change) {
  MoveCounters<true>(block, low, change);
}
bool Lower(uint64_t* block, uint32_t low, CounterChange* change) {
  if (!TestCounters(block, low)) return false;
  MoveCounters<false>(block, low, change);
  return true;
}

// visit(block, low, i) for each hash.
template <class Word, class Visit>
HWY_INLINE void ForEachBlock(Word* words, uint64_t blocks, std::span<const uint64_t> hashes,
                             Visit&& visit) {
  const auto block = [=](uint64_t hash)
                         HWY_ATTR { return words + FastRange(hash, blocks) * kCounterBlockWords; };
  const size_t n = hashes.size();
  for (size_t i = 0; i < n && i < kDistance; ++i)
    __builtin_prefetch(block(hashes[i]), kForWriting<Word>);
  for (size_t i = 0; i < n; ++i) {
    if (i + kDistance < n) __builtin_prefetch(block(hashes[i + kDistance]), kForWriting<Word>);
    visit(block(hashes[i]), static_cast<uint32_t>(hashes[i]), i);
  }
}

void TestMany(const uint64_t* words, uint64_t blocks, std::span<const uint64_t> hashes,
              uint64_t* answers) {
  ForEachBlock(words, blocks, hashes, [=](const uint64_t* block, uint32_t low, size_t i) HWY_ATTR {
    answers[i / 64] |= uint64_t{TestCounters(block, low)} << (i % 64);
  });
}

CounterChange RaiseMany(uint64_t* words, uint64_t blocks, std::span<const uint64_t> hashes) {
  CounterChange change;
  ForEachBlock(words, blocks, hashes, [&](uint64_t* block, uint32_t low, size_t) HWY_ATTR {
    MoveCounters<true>(block, low, &change);
  });
  return change;
}

CounterChange LowerMany(uint64_t* words, uint64_t blocks, std::span<const uint64_t> hashes,
                        uint64_t* answers) {
  CounterChange change;
  ForEachBlock(words, blocks, hashes, [&](uint64_t* block, uint32_t low, size_t i) HWY_ATTR {
    if (!TestCounters(block, low)) return;
    MoveCounters<false>(block, low, &change);
    answers[i / 64] |= uint64_t{1} << (i % 64);
  });
  return change;
}

CounterBlockFunctions Functions() { return {Test, Raise, Lower, TestMany, RaiseMany, LowerMany}; }

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
