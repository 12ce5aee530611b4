// False-positive rates against their formulas: distinct keys, fixed seeds, five sigmas, and the
// same check failing on a filter of half the size.
#include <gtest/gtest.h>

#include <cmath>

#include "tamis/base/random.h"
#include "tamis/filter/fpr.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

struct Measured {
  double hits;
  double asked;
  double rate() const { return hits / asked; }
  // Not above the rate by more than five sigmas of the draw; `spread` is the relative standard
  // deviation of the rate between filters of this size.
  bool AtMost(double fpr, double spread) const {
    const double sigma = std::sqrt(asked * fpr * (1 - fpr) + std::pow(asked * fpr * spread, 2));
    return hits <= asked * fpr + 5 * sigma;
  }
};

template <class F>
Measured Measure(const F& filter, uint64_t asked) {
  std::vector<uint64_t> hashes(4096);
  double hits = 0;
  for (uint64_t begin = 0; begin < asked; begin += hashes.size()) {
    for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = Key(2, begin + i);
    for (const uint64_t word : filter.MayContain(std::span<const uint64_t>(hashes))) {
      hits += std::popcount(word);
    }
  }
  return {hits, static_cast<double>(asked)};
}

template <class F>
F Filled(uint64_t capacity, double fpr, uint64_t keys) {
  F filter = *F::Create({.capacity = capacity, .fpr = fpr, .seed = 1});
  for (uint64_t i = 0; i < keys; ++i) (void)filter.Insert(Key(1, i));
  return filter;
}

template <class F>
class FilterStatisticsTest : public testing::Test {};
TYPED_TEST_SUITE(FilterStatisticsTest, AllFilters);

TYPED_TEST(FilterStatisticsTest, AFullFilterKeepsItsRateAndOneOfHalfTheSizeDoesNot) {
  constexpr uint64_t kKeys = 1 << 17;
  constexpr uint64_t kAsked = 1 << 21;
  for (const double fpr : {0.05, 0.01, 0.001, 0.0001}) {
    EXPECT_TRUE(Measure(Filled<TypeParam>(kKeys, fpr, kKeys), kAsked).AtMost(fpr, 0.02))
        << Measure(Filled<TypeParam>(kKeys, fpr, kKeys), kAsked).rate() << " of " << fpr;
  }
  // Overfilled, and measured with a scalable filter's one layer for what it does when it grows.
  using Single =
      std::conditional_t<std::is_same_v<TypeParam, ScalableSplitCountingBloomFilter>,
                         SplitCountingBloomFilter,
                         std::conditional_t<std::is_same_v<TypeParam, ScalableBloomFilter>,
                                            BlockedBloomFilter, TypeParam>>;
  if constexpr (std::is_same_v<TypeParam, CuckooFilter> ||
                std::is_same_v<TypeParam, DLeftCountingBloomFilter> ||
                std::is_same_v<TypeParam, QuotientFilter> ||
                std::is_same_v<TypeParam, BlockedQuotientFilter>) {  // refuse: shorter tags instead
    EXPECT_FALSE(Measure(Filled<Single>(kKeys, 0.004, kKeys), kAsked).AtMost(0.001, 0.02));
  } else {
    EXPECT_FALSE(Measure(Filled<Single>(kKeys / 2, 0.001, kKeys), kAsked).AtMost(0.001, 0.02));
  }
}

TYPED_TEST(FilterStatisticsTest, ExpectedFprIsTheMeasuredRate) {
  constexpr uint64_t kKeys = 50000;
  constexpr uint64_t kAsked = 1 << 21;
  for (const uint64_t keys : {kKeys / 2, kKeys}) {
    const TypeParam filter = Filled<TypeParam>(kKeys, 0.01, keys);
    const double expected = filter.ExpectedFpr();
    const double sigma = std::sqrt(expected * (1 - expected) / kAsked) + 0.005 * expected;
    EXPECT_NEAR(Measure(filter, kAsked).rate(), expected, 5 * sigma);
  }
}

TEST(ScalableStatisticsTest, LayersAddTheirRates) {
  constexpr uint64_t kCapacity = 20000;
  constexpr uint64_t kAsked = 1 << 21;
  const auto filter = Filled<ScalableSplitCountingBloomFilter>(kCapacity, 0.001, 4 * kCapacity);
  ASSERT_GE(filter.layers(), 4u);
  ASSERT_LE(filter.layers(), 5u);
  EXPECT_TRUE(Measure(filter, kAsked).AtMost(fpr::Layers(0.001, 4), 0.03));
  EXPECT_FALSE(Measure(filter, kAsked).AtMost(fpr::Layers(0.001, 2), 0.03));
}

// Two keys that agree in two slices must not agree in all. The same geometry with positions
// h1 + i h2 has 20,000 / 28,854^2 = 2.4e-5 on top, twenty-four times the wanted rate.
TEST(SplitStatisticsTest, SlicesAreIndependentEnoughForOneInAMillion) {
  constexpr uint64_t kKeys = 20000;
  constexpr uint64_t kAsked = 1 << 24;
  const auto geometry = SplitGeometry::For(1e-6, kKeys);
  const auto measure = [&](auto&& offset) {
    std::vector<bool> bits(geometry.positions());
    const auto position = [&](uint64_t hash, uint32_t s) {
      return uint64_t{s} * geometry.slice_positions + offset(hash, s);
    };
    for (uint64_t i = 0; i < kKeys; ++i) {
      for (uint32_t s = 0; s < geometry.slices; ++s) bits[position(Key(1, i), s)] = true;
    }
    double hits = 0;
    for (uint64_t i = 0; i < kAsked; ++i) {
      const uint64_t hash = Key(2, i);
      uint32_t s = 0;
      while (s < geometry.slices && bits[position(hash, s)]) ++s;
      hits += s == geometry.slices;
    }
    return Measured{hits, kAsked};
  };
  EXPECT_TRUE(measure([&](uint64_t hash, uint32_t s) {
                return geometry.Offset(hash, s);
              }).AtMost(1e-6, 0.05));
  EXPECT_FALSE(measure([&](uint64_t hash, uint32_t s) {
                 const uint64_t h1 = hash >> 32;
                 const uint64_t h2 = hash & 0xffffffff;
                 return (h1 + s * h2) % geometry.slice_positions;
               }).AtMost(1e-6, 0.05));
}

}  // namespace
}  // namespace tamis
