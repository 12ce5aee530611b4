#include "tamis/filter/fpr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace tamis::fpr {
namespace {

TEST(FprTest, BloomAtItsBestNumberOfHashesNeeds144PercentOfTheBound) {
  EXPECT_NEAR(BloomBits(1000, 0.01) / InformationBound(1000, 0.01), 1.4427, 1e-4);
  EXPECT_NEAR(Bloom(9.585e6, 1e6, 7), 0.01, 1e-4);
  EXPECT_EQ(BloomHashes(9.585e6, 1e6), 7u);
  EXPECT_EQ(BloomHashes(1, 1000), 1u);
}

TEST(FprTest, TheCacheSystemsCaseIsTheFormulasNotThePrinted) {
  EXPECT_NEAR(Bloom(1.6e6, 80000, 6), 3.03e-4, 1e-6);
  EXPECT_NEAR(Bloom(1.6e6, 80000, 14), 6.7e-5, 1e-6);  // printed as 1.4e-4
}

TEST(FprTest, ASplitFilterIsHalfFullAtCapacity) {
  EXPECT_NEAR(SplitFill(36864, 25552), 0.5, 1e-4);
  EXPECT_NEAR(Split(36864, 25552, 10), std::pow(0.5, 10), 1e-5);
  EXPECT_EQ(SplitFill(1, 1), 1.0);
  EXPECT_EQ(SplitFill(1, 0), 0.0);
}

TEST(FprTest, LayersOfASmallRateAddUp) {
  EXPECT_NEAR(Layers(1e-3, 10), 0.00995, 1e-5);
  EXPECT_NEAR(Layers(1e-12, 3), 3e-12, 1e-15);
}

TEST(FprTest, CounterTailsKeepTheirDigitsWhereOneMinusTheHeadLosesThem) {
  const double mean = std::numbers::ln2;
  EXPECT_NEAR(CounterTail(mean, 0), 1.0, 1e-12);
  EXPECT_NEAR(CounterTail(mean, 2), 0.1534, 1e-4);
  EXPECT_NEAR(CounterTail(mean, 4), 5.56e-3, 1e-5);
  EXPECT_NEAR(CounterTail(mean, 8), 7.15e-7, 1e-9);
  EXPECT_NEAR(CounterTail(mean, 16), 7.07e-17, 1e-19);
  EXPECT_NEAR(CounterTailBound(mean, 16), 1.36e-16, 1e-18);
  EXPECT_NEAR(CounterTailBound(mean, 2), 0.250, 1e-3);
}

TEST(FprTest, TheLargestOfManyCountersIsAboutSeven) {
  EXPECT_NEAR(LargestCounter(std::numbers::ln2, 368640), 7.2, 0.05);
  EXPECT_NEAR(LargestCounter(std::numbers::ln2, 1), std::numbers::ln2, 1e-9);
}

TEST(FprTest, DLeftSharesFallFromLeftToRight) {
  const std::array<double, 4> shares = DLeftShares(500000, 32768);
  const std::array<double, 4> published = {135203, 128226, 122795, 113776};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(shares[i], published[i] / 500000, 3e-4);
  EXPECT_GT(DLeftShares(1, 32768)[0], 0.9999);  // the first key goes left
}

TEST(FprTest, CuckooFiltersPassBloomFiltersBelowTheRateOfTheFormula) {
  EXPECT_NEAR(CuckooBits(0.0035, 0.95, false), BloomBits(1, 0.0035), 0.05);
  EXPECT_NEAR(CuckooBits(0.0233, 0.95, true), BloomBits(1, 0.0233), 0.05);
}

}  // namespace
}  // namespace tamis::fpr
