#include "tamis/filter/quotient_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tamis/base/random.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

using Fingerprint = QuotientFilter::Fingerprint;

std::vector<Fingerprint> All(const QuotientFilter& filter) {
  std::vector<Fingerprint> all;
  filter.ForEach([&](const Fingerprint& fingerprint) { all.push_back(fingerprint); });
  return all;
}

// 64 quotients and remainders of 3 bits: a hash is its highest nine bits.
TEST(QuotientFilterTest, IsExactlyTheMultisetOfItsFingerprints) {
  Random random(1);
  auto filter = *QuotientFilter::Create({.capacity = 54, .fpr = 0.15});
  ASSERT_EQ(filter.remainder_bits(), 3u);
  std::multiset<uint64_t> model;
  uint64_t refused = 0;
  for (int step = 0; step < 100000; ++step) {
    const uint64_t hash = random.OneIn(3) ? random() : random.Uniform(1 << 5) << 55;
    const uint64_t value = hash >> 55;
    if (random.Uniform(10) < (step / 500 % 2 == 0 ? 7u : 3u)) {
      if (filter.Insert(hash)) {
        model.insert(value);
      } else {
        ++refused;
      }
    } else {
      const auto at = model.find(value);
      ASSERT_EQ(filter.Erase(hash), at != model.end());
      if (at != model.end()) model.erase(at);
    }
    ASSERT_EQ(filter.MayContain(hash), model.contains(value));
    ASSERT_EQ(filter.Copies(hash), model.count(value));
    if (step % 50 == 0) {
      std::vector<uint64_t> values;
      for (const Fingerprint& f : All(filter)) values.push_back(f.quotient << 3 | f.remainder);
      ASSERT_EQ(values, std::vector<uint64_t>(model.begin(), model.end())) << step;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(QuotientFilterTest, GrowsAndShrinksWithoutItsKeysAndKeepsItsRate) {
  auto filter = *QuotientFilter::Create({.capacity = 6000, .fpr = 0.01});
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(filter.Insert(Key(1, i)));
  const double fpr = filter.ExpectedFpr();
  const std::string before = filter.Serialize();
  ASSERT_TRUE(filter.Grow().ok());
  ASSERT_TRUE(filter.Grow().ok());
  EXPECT_NEAR(filter.ExpectedFpr(), fpr, fpr * 1e-6);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(filter.MayContain(Key(1, i)));
  for (uint64_t i = 3000; i < 24000; ++i) ASSERT_TRUE(filter.Insert(Key(1, i)));
  EXPECT_EQ(QuotientFilter(filter).Shrink().code(), StatusCode::kResourceExhausted);
  for (uint64_t i = 3000; i < 24000; ++i) ASSERT_TRUE(filter.Erase(Key(1, i)));
  ASSERT_TRUE(filter.Shrink().ok());
  ASSERT_TRUE(filter.Shrink().ok());
  EXPECT_EQ(filter.Serialize(), before);
  while (filter.Grow().ok()) {
  }
  EXPECT_EQ(filter.Grow().code(), StatusCode::kFailedPrecondition);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(filter.MayContain(Key(1, i)));
}

TEST(QuotientFilterTest, KeepsSixtyFourCopiesAndCountsThem) {
  auto filter = *QuotientFilter::Create({.capacity = 1000, .fpr = 1e-6});
  for (uint32_t i = 0; i < QuotientFilter::kMaxCopies; ++i) {
    EXPECT_EQ(filter.Copies(Key(2, 0)), i);
    ASSERT_TRUE(filter.Insert(Key(2, 0)));
  }
  EXPECT_FALSE(filter.Insert(Key(2, 0)));
  for (uint32_t i = QuotientFilter::kMaxCopies; i > 0; --i) {
    EXPECT_EQ(filter.Copies(Key(2, 0)), i);
    EXPECT_TRUE(filter.Erase(Key(2, 0)));
  }
  EXPECT_EQ(filter.Count(), 0u);
}

TEST(QuotientFilterTest, TheOrderOfInsertsLeavesNoTrace) {
  auto a = *QuotientFilter::Create({.capacity = 5000});
  auto b = *QuotientFilter::Create({.capacity = 5000});
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(a.Insert(Key(3, i)));
    ASSERT_TRUE(b.Insert(Key(3, 4999 - i)));
  }
  EXPECT_EQ(a.Serialize(), b.Serialize());
}

TEST(QuotientFilterTest, RefusesFromALoadOf95PercentOnAndLosesNothing) {
  auto filter = *QuotientFilter::Create({.capacity = 100'000});
  uint64_t held = 0;
  while (filter.Insert(Key(4, held))) ++held;
  EXPECT_GE(filter.Fill(), 0.95);
  for (uint64_t i = 0; i < held; ++i) ASSERT_TRUE(filter.MayContain(Key(4, i)));
}

TEST(QuotientFilterTest, MergeThatDoesNotFitChangesNothing) {
  auto a = *QuotientFilter::Create({.capacity = 1000});
  auto b = *QuotientFilter::Create({.capacity = 1000});
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(a.Insert(Key(5, i)));
    ASSERT_TRUE(b.Insert(Key(6, i)));
  }
  const std::string before = a.Serialize();
  EXPECT_EQ(a.Merge(b).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(a.Serialize(), before);
  ASSERT_TRUE(a.Grow().ok());
  ASSERT_TRUE(b.Grow().ok());
  EXPECT_TRUE(a.Merge(b).ok());
  EXPECT_EQ(a.Count(), 2000u);
}

TEST(QuotientFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *QuotientFilter::Create({.capacity = 30, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(filter.Insert(Mix(i)));
  EXPECT_EQ(Hash(filter.Serialize(), 0), 837156201187924672u) << "bytes changed";
}

// Bytes of one stretch from end to end: two keys of the first quotient and one of each other. They
// are read as quickly as any others, or this test takes minutes.
TEST(QuotientFilterTest, OneStretchOfAllKeysIsReadAsQuicklyAsManyStretches) {
  constexpr uint64_t kSlots = uint64_t{1} << 19;
  constexpr uint64_t kKeys = kSlots * 15 / 16;
  // Four bits a slot: occupied, continued, shifted, and a remainder of one bit.
  const auto bytes = [&](bool shifted_first) {
    std::vector<uint64_t> words((kSlots + 64) * 4 / 64 + 1);
    for (uint64_t slot = 0; slot < kKeys; ++slot) {
      const uint64_t occupied = slot + 1 < kKeys;
      const uint64_t continued = slot == 1;
      const uint64_t shifted = slot > 0 || shifted_first;
      words[slot / 16] |= (occupied | continued << 1 | shifted << 2) << slot % 16 * 4;
    }
    return SealFilter({.kind = QuotientFilter::kKind, .seed = 1, .parameters = {kSlots, 1, kKeys}},
                      words);
  };
  const auto filter = QuotientFilter::Deserialize(bytes(false));
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->Serialize(), bytes(false));
  uint64_t first = 0;
  filter->ForEach([&](const QuotientFilter::Fingerprint& key) { first += key.quotient == 0; });
  EXPECT_EQ(first, 2u);
  EXPECT_EQ(QuotientFilter::Deserialize(bytes(true)).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis
