#include "tamis/filter/bloom_filter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tamis/base/random.h"
#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

TEST(BloomFilterTest, SizesAreTheTextbooks) {
  const auto filter = *BloomFilter::Create({.capacity = 1'000'000, .fpr = 0.01});
  EXPECT_EQ(filter.hashes(), 7u);
  EXPECT_NEAR(static_cast<double>(filter.bits()), 9.585e6, 0.03e6);
}

// In filters of a few hundred bits a weak choice of positions shows most: the rate over many small
// filters is the formula's within a few percent.
TEST(BloomFilterTest, PositionsOfSmallFiltersAreAsGoodAsRandomOnes) {
  Random random(1);
  double hits = 0;
  double variance = 0;
  double expected = 0;
  constexpr int kFilters = 2000;
  constexpr int kAsked = 500;
  for (int f = 0; f < kFilters; ++f) {
    auto filter = *BloomFilter::Create({.capacity = 50, .fpr = 0.01});
    for (int i = 0; i < 50; ++i) filter.Insert(random());
    int here = 0;
    for (int i = 0; i < kAsked; ++i) here += filter.MayContain(random());
    // Given its fill, a filter with independent positions has exactly this rate.
    const double rate = std::pow(filter.Fill(), filter.hashes());
    hits += here;
    expected += kAsked * rate;
    variance += kAsked * rate * (1 - rate);
  }
  EXPECT_NEAR(hits, expected, 5 * std::sqrt(variance));
}

TEST(BloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *BloomFilter::Create({.capacity = 10, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 10; ++i) filter.Insert(Mix(i));
  EXPECT_EQ(Hash(filter.Serialize(), 0), 15563531047971510588u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
