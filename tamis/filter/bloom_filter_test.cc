#include "tamis/filter/bloom_filter.h"

#include <gtest/gtest.h>

#include <bitset>
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

// Whether many small filters have the rate of their fill, which those with independent positions
// have exactly. for_each(hash, visit) visits the k positions of a hash among kBits.
constexpr uint32_t kBits = 479;  // a prime is best for arithmetic progressions
constexpr uint32_t kHashes = 7;

template <class ForEach>
bool AreAsGoodAsRandom(ForEach&& for_each) {
  Random random(1);
  double hits = 0;
  double variance = 0;
  double expected = 0;
  for (int f = 0; f < 8000; ++f) {
    std::bitset<kBits> bits;
    for (int i = 0; i < 50; ++i) for_each(random(), [&](uint64_t bit) { return bits[bit] = true; });
    constexpr int kAsked = 500;
    for (int i = 0; i < kAsked; ++i) {
      bool all = true;
      for_each(random(), [&](uint64_t bit) { return all = bits[bit]; });
      hits += all;
    }
    const double rate = std::pow(static_cast<double>(bits.count()) / kBits, kHashes);
    expected += kAsked * rate;
    variance += kAsked * rate * (1 - rate);
  }
  return std::abs(hits - expected) < 5 * std::sqrt(variance);
}

// In filters of a few hundred bits a weak choice of positions shows most.
TEST(BloomFilterTest, PositionsOfSmallFiltersAreAsGoodAsRandomOnes) {
  EXPECT_TRUE(AreAsGoodAsRandom([](uint64_t hash, auto&& visit) {
    BloomPositions{kBits, kHashes}.ForEach(hash, visit);
  }));
}

// They have 15 % more false positives.
TEST(BloomFilterTest, TheSameTestFailsWithPositionsInArithmeticProgression) {
  EXPECT_FALSE(AreAsGoodAsRandom([](uint64_t hash, auto&& visit) {
    for (uint64_t i = 0; i < kHashes; ++i) {
      if (!visit(((hash >> 32) + i * (hash & 0xffffffff)) % kBits)) return;
    }
  }));
}

TEST(BloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *BloomFilter::Create({.capacity = 10, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 10; ++i) filter.Insert(Mix(i));
  EXPECT_EQ(Hash(filter.Serialize(), 0), 15563531047971510588u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
