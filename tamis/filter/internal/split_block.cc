#include "tamis/filter/internal/split_block.h"

#include <bit>

#include "tamis/base/lookup_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tamis/filter/internal/split_block.cc"
#include <hwy/foreach_target.h>  // compiles this file once for each target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tamis {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kDistance = 24;  // blocks fetched ahead; each is one line

template <uint32_t kLanes>
using Tag = hn::CappedTag<uint32_t, kLanes>;

template <class D>
hn::Vec<D> Mask(D d, uint32_t low32, uint32_t lane) {
  const auto low = hn::Set(d, low32);
  const auto salts = hn::LoadU(d, kLaneSalts.data() + lane);
  return hn::Shl(hn::Set(d, 1u), hn::ShiftRight<27>(hn::Mul(low, salts)));
}

template <uint32_t kLanes>
bool TestBlock(const uint64_t* block, uint32_t low) {
  const Tag<kLanes> d;
  const auto* lanes = reinterpret_cast<const uint32_t*>(block);
  for (uint32_t l = 0; l < kLanes; l += hn::Lanes(d)) {
    const auto mask = Mask(d, low, l);
    const auto missing = hn::AndNot(hn::LoadU(d, lanes + l), mask);
    if (!hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)))) return false;
  }
  return true;
}

template <uint32_t kLanes>
void SetBlock(uint64_t* block, uint32_t low) {
  const Tag<kLanes> d;
  auto* lanes = reinterpret_cast<uint32_t*>(block);
  for (uint32_t l = 0; l < kLanes; l += hn::Lanes(d)) {
    hn::StoreU(hn::Or(hn::LoadU(d, lanes + l), Mask(d, low, l)), d, lanes + l);
  }
}

template <uint32_t kLanes>
void TestMany(const SplitBlocks& s, const uint64_t* words, const uint64_t* hashes, size_t n,
              uint64_t* answers) {
  // The places are computed once and kept for the time between fetching and testing.
  uint64_t places[kDistance];
  for (size_t i = 0; i < n && i < kDistance; ++i) {
    places[i] = FastRange(hashes[i], s.blocks()) * (kLanes / 2);
    __builtin_prefetch(words + places[i]);
  }
  size_t slot = 0;
  for (size_t first = 0; first < n; first += 64) {
    uint64_t answer = 0;  // in a register: the words of the filter could alias the answers
    for (size_t i = first; i < n && i < first + 64; ++i) {
      const uint64_t here = places[slot];
      if (i + kDistance < n) {
        places[slot] = FastRange(hashes[i + kDistance], s.blocks()) * (kLanes / 2);
        __builtin_prefetch(words + places[slot]);
      }
      if (++slot == kDistance) slot = 0;
      answer |= uint64_t{TestBlock<kLanes>(words + here, static_cast<uint32_t>(hashes[i]))}
                << (i - first);
    }
    answers[first / 64] = answer;
  }
}

template <uint32_t kLanes>
void SetMany(const SplitBlocks& s, uint64_t* words, const uint64_t* hashes, size_t n) {
  const auto place = [&](size_t i) {
    return words + FastRange(hashes[i], s.blocks()) * (kLanes / 2);
  };
  for (size_t i = 0; i < n && i < kDistance; ++i) __builtin_prefetch(place(i), 1);
  for (size_t i = 0; i < n; ++i) {
    if (i + kDistance < n) __builtin_prefetch(place(i + kDistance), 1);
    SetBlock<kLanes>(place(i), static_cast<uint32_t>(hashes[i]));
  }
}

SplitBlocks::Functions FunctionsFor(uint32_t lanes) {
  if (lanes == 8) return {TestBlock<8>, SetBlock<8>};
  return {TestBlock<16>, SetBlock<16>};
}
void TestAll(const SplitBlocks& s, const uint64_t* words, const uint64_t* hashes, size_t n,
             uint64_t* answers) {
  (s.lanes() == 8 ? TestMany<8> : TestMany<16>)(s, words, hashes, n, answers);
}
void SetAll(const SplitBlocks& s, uint64_t* words, const uint64_t* hashes, size_t n) {
  (s.lanes() == 8 ? SetMany<8> : SetMany<16>)(s, words, hashes, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tamis
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tamis {

HWY_EXPORT(FunctionsFor);
HWY_EXPORT(TestAll);
HWY_EXPORT(SetAll);

SplitBlocks::SplitBlocks(uint32_t lanes, uint64_t blocks)
    : lanes_(lanes), blocks_(blocks), functions_(HWY_DYNAMIC_DISPATCH(FunctionsFor)(lanes)) {}

double SplitBlocks::ExpectedFpr(const uint64_t* words) const {
  double sum = 0;
  for (uint64_t block = 0; block < blocks_; ++block) {
    double all = 1;
    for (uint32_t pair = 0; pair < lanes_ / 2; ++pair, ++words) {
      all *= std::popcount(static_cast<uint32_t>(*words)) * std::popcount(*words >> 32) / 1024.0;
    }
    sum += all;
  }
  return sum / static_cast<double>(blocks_);
}
Bitmap SplitBlocks::Test(const uint64_t* words, std::span<const uint64_t> hashes) const {
  Bitmap answers((hashes.size() + 63) / 64);
  HWY_DYNAMIC_DISPATCH(TestAll)(*this, words, hashes.data(), hashes.size(), answers.data());
  return answers;
}
void SplitBlocks::Set(uint64_t* words, std::span<const uint64_t> hashes) const {
  HWY_DYNAMIC_DISPATCH(SetAll)(*this, words, hashes.data(), hashes.size());
}

}  // namespace tamis
#endif  // HWY_ONCE
