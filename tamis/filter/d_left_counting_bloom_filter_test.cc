#include "tamis/filter/d_left_counting_bloom_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tamis/base/random.h"
#include "tamis/filter/filters_for_test.h"

namespace tamis {
namespace {

// With two buckets and remainders of 7 bits a hash is its highest eight bits: small enough to hold
// against a map, and so full of collisions that everything happens.
TEST(DLeftCountingBloomFilterTest, IsExactlyTheMultisetOfItsValues) {
  Random random(1);
  auto filter = *DLeftCountingBloomFilter::Create({.capacity = 30, .fpr = 0.3});
  std::map<uint64_t, uint32_t> model;
  uint64_t held = 0;
  uint64_t refused = 0;
  for (int step = 0; step < 200000; ++step) {
    const uint64_t hash = random();
    const uint64_t value = hash >> 56;
    const bool grow = step / 2000 % 2 == 0;
    if (random.Uniform(10) < (grow ? 7u : 2u) && model[value] < 14) {
      if (filter.Insert(hash)) {
        ++model[value];
        ++held;
      } else {
        ++refused;
        ASSERT_EQ(model[value], 0u) << "a value that is held is only counted";
      }
    } else {
      ASSERT_EQ(filter.Erase(hash), model[value] > 0);
      if (model[value] > 0) {
        --model[value];
        --held;
      }
    }
    ASSERT_EQ(filter.MayContain(hash), model[value] > 0);
    ASSERT_EQ(filter.Count(), held);
  }
  for (uint64_t value = 0; value < 256; ++value) {
    EXPECT_EQ(filter.MayContain(value << 56), model[value] > 0);
  }
  EXPECT_GT(refused, 0u);
}

TEST(DLeftCountingBloomFilterTest, HoldsHalfAMillionKeysAtOneInAMillion) {
  constexpr uint64_t kKeys = 500'000;
  constexpr uint64_t kAsked = 1 << 20;
  for (const double fpr : {1e-6, 1e-4}) {
    auto filter = *DLeftCountingBloomFilter::Create({.capacity = kKeys, .fpr = fpr});
    for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(filter.Insert(Key(1, i)));
    EXPECT_LE(filter.ExpectedFpr(), fpr);
    uint64_t hits = 0;
    for (uint64_t i = 0; i < kAsked; ++i) hits += filter.MayContain(Key(2, i));
    const double expected = filter.ExpectedFpr() * kAsked;
    EXPECT_NEAR(static_cast<double>(hits), expected, 5 * std::sqrt(expected));
  }
}

TEST(DLeftCountingBloomFilterTest, CountersStickAtTheirGreatestValue) {
  for (const uint32_t counter_bits : {2u, 4u}) {
    const uint64_t greatest = (1 << counter_bits) - 1;
    auto filter = *DLeftCountingBloomFilter::Create({.capacity = 10, .counter_bits = counter_bits});
    for (uint64_t i = 0; i < greatest - 1; ++i) ASSERT_TRUE(filter.Insert(Key(3, 0)));
    EXPECT_EQ(filter.saturated_count(), 0u);
    for (uint64_t i = 0; i < greatest - 1; ++i) EXPECT_TRUE(filter.Erase(Key(3, 0)));
    EXPECT_FALSE(filter.MayContain(Key(3, 0)));
    for (uint64_t i = 0; i < greatest; ++i) ASSERT_TRUE(filter.Insert(Key(3, 0)));
    EXPECT_EQ(filter.saturated_count(), 1u);
    for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(filter.Erase(Key(3, 0)));
    EXPECT_TRUE(filter.MayContain(Key(3, 0)));
    EXPECT_EQ(filter.ignored_decrements(), 100u);
  }
}

TEST(DLeftCountingBloomFilterTest, GrowsInsteadOfRefusingAndStillErasesExactly) {
  constexpr uint64_t kCapacity = 2000;
  auto filter = *DLeftCountingBloomFilter::Create({.capacity = kCapacity, .grows = true});
  auto refuses = *DLeftCountingBloomFilter::Create({.capacity = kCapacity});
  bool refused = false;
  for (uint64_t i = 0; i < 5 * kCapacity; ++i) {
    ASSERT_TRUE(filter.Insert(Key(4, i)));
    refused = refused || !refuses.Insert(Key(4, i));
  }
  EXPECT_TRUE(refused);
  EXPECT_GE(filter.tables(), 4u);
  EXPECT_NEAR(filter.ExpectedFpr(), 5 * 24 / 4096.0, 0.003);
  for (uint64_t i = 0; i < 5 * kCapacity; ++i) ASSERT_TRUE(filter.MayContain(Key(4, i)));
  const auto read = DLeftCountingBloomFilter::Deserialize(filter.Serialize());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tables(), filter.tables());
  for (uint64_t i = 0; i < 5 * kCapacity; ++i) {
    ASSERT_TRUE(filter.MayContain(Key(4, i)));
    ASSERT_TRUE(filter.Erase(Key(4, i)));
  }
  EXPECT_EQ(filter.Fill(), 0.0);
}

TEST(DLeftCountingBloomFilterTest, CountersAreOfTwoOrFourBits) {
  EXPECT_EQ(DLeftCountingBloomFilter::Create({.capacity = 10, .counter_bits = 3}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(DLeftCountingBloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *DLeftCountingBloomFilter::Create(
      {.capacity = 20, .fpr = 0.01, .seed = 0x5eed, .counter_bits = 2, .grows = true});
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(filter.Insert(Mix(i)));
  EXPECT_EQ(Hash(filter.Serialize(), 0), 18235063660377738943u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
