#include "tamis/filter/d_left_counting_bloom_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tamis/base/random.h"
#include "tamis/filter/testing/filters.h"
#include "tamis/filter/testing/targets.h"

namespace tamis {
namespace {

// With two buckets and remainders of 8 bits a hash is its highest nine bits: small enough to hold
// against a map, and so full of collisions that everything happens.
TEST(DLeftCountingBloomFilterTest, IsExactlyTheMultisetOfItsValues) {
  Random random(1);
  auto filter = *DLeftCountingBloomFilter::Create({.capacity = 30, .fpr = 0.3});
  std::map<uint64_t, uint32_t> model;
  uint64_t held = 0;
  uint64_t refused = 0;
  for (int step = 0; step < 200000; ++step) {
    const uint64_t hash = random();
    const uint64_t value = hash >> 55;
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
  for (uint64_t value = 0; value < 512; ++value) {
    EXPECT_EQ(filter.MayContain(value << 55), model[value] > 0);
  }
  EXPECT_GT(refused, 0u);
}

// Cells of every width, one by one and in batches, held against a map of the values.
TEST(DLeftCountingBloomFilterTest, BatchesOfEveryWidthAndTargetEqualSingleCalls) {
  constexpr uint64_t kCapacity = 700;
  for (uint32_t bits = DLeftLayout::kMinRemainderBits; bits <= DLeftLayout::kMaxRemainderBits;
       ++bits) {
    const double fpr = 1.001 * 24 / std::exp2(bits);
    if (fpr < FilterOptions::kMinFpr) break;
    const DLeftCountingBloomFilter::Options options = {
        .capacity = kCapacity, .fpr = fpr, .counter_bits = bits % 2 == 0 ? 2u : 4u, .grows = true};
    auto single = *DLeftCountingBloomFilter::Create(options);
    auto batch = *DLeftCountingBloomFilter::Create(options);
    ASSERT_EQ(single.remainder_bits(), bits);
    std::vector<uint64_t> keys(2 * kCapacity);  // so that there are several tables
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = Key(bits, i);
    for (const uint64_t key : keys) ASSERT_TRUE(single.Insert(key));
    const Bitmap inserted = batch.Insert(keys);
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_TRUE(inserted[i / 64] >> (i % 64) & 1);
    EXPECT_GE(single.tables(), 2u);
    EXPECT_EQ(batch.Serialize(), single.Serialize());

    const std::span<const uint64_t> leaving = std::span(keys).first(kCapacity + 7);
    for (const uint64_t key : leaving) ASSERT_TRUE(single.Erase(key));
    const Bitmap erased = batch.Erase(leaving);
    for (size_t i = 0; i < leaving.size(); ++i) ASSERT_TRUE(erased[i / 64] >> (i % 64) & 1);
    EXPECT_EQ(batch.Serialize(), single.Serialize());

    keys.resize(4 * kCapacity);  // half of them were never there
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = Key(bits, i);
    ForEachTarget([&] {
      const Bitmap found = single.MayContain(keys);
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(found[i / 64] >> (i % 64) & 1, uint64_t{single.MayContain(keys[i])}) << i;
      }
    });
    for (size_t i = leaving.size(); i < 2 * kCapacity; ++i) {
      ASSERT_TRUE(single.MayContain(keys[i])) << bits;
    }
  }
}

TEST(DLeftLayoutTest, EveryCellKeepsWhatIsSetAndNothingElseChanges) {
  Random random(5);
  for (uint32_t bits = DLeftLayout::kMinRemainderBits; bits <= DLeftLayout::kMaxRemainderBits;
       ++bits) {
    for (const uint32_t counter_bits : {2u, 4u}) {
      const DLeftLayout layout(3, bits, counter_bits);
      std::vector<uint64_t> words(layout.words());
      char* table = reinterpret_cast<char*>(words.data());
      std::vector<std::pair<uint64_t, uint32_t>> model(layout.cells());
      for (int step = 0; step < 500; ++step) {
        const uint64_t i = random.Uniform(layout.cells());
        const auto cell = static_cast<uint32_t>(i % 8);
        char* bucket = table + i / 8 * layout.bucket_bytes();
        model[i] = {random() >> (64 - bits), random.Uniform(layout.max_counter() + 1)};
        layout.SetRemainder(bucket, cell, model[i].first);
        layout.SetCounter(bucket, cell, model[i].second);
        uint32_t used = 0;
        for (uint32_t c = 0; c < 8; ++c) used += model[i / 8 * 8 + c].second != 0;
        ASSERT_EQ(layout.CountUsed(bucket), used);
        if (used < 8) {
          const uint32_t empty = layout.FirstEmpty(bucket);
          ASSERT_EQ(model[i / 8 * 8 + empty].second, 0u);
        }
      }
      for (uint64_t i = 0; i < layout.cells(); ++i) {
        const char* bucket = table + i / 8 * layout.bucket_bytes();
        ASSERT_EQ(layout.Remainder(bucket, i % 8), model[i].first);
        ASSERT_EQ(layout.Counter(bucket, i % 8), model[i].second);
      }
      EXPECT_EQ(words.back(), 0u);
    }
  }
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

// They hold cells one by one, where these hold them part by part.
TEST(DLeftCountingBloomFilterTest, BytesOfTheFormerKindAreRefused) {
  const auto filter = *DLeftCountingBloomFilter::Create({.capacity = 20});
  const std::string present = filter.Serialize();
  const auto opened = *OpenFilter(present, DLeftCountingBloomFilter::kKind, 9, OpenMode::kCopy);
  FilterHeader header = opened.header;
  header.kind = FilterKind{7};
  const std::string bytes = SealFilter(header, opened.payload);
  EXPECT_EQ(DLeftCountingBloomFilter::Deserialize(bytes).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(AnyFilter::Deserialize(bytes).status().code(), StatusCode::kDataLoss);
}

TEST(DLeftCountingBloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *DLeftCountingBloomFilter::Create(
      {.capacity = 20, .fpr = 0.01, .seed = 0x5eed, .counter_bits = 2, .grows = true});
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(filter.Insert(Mix(i)));
  EXPECT_EQ(Hash(filter.Serialize(), 0), 4548564731031500949u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
