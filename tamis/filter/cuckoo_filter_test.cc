#include "tamis/filter/cuckoo_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tamis/base/random.h"
#include "tamis/filter/fpr.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

struct Width {
  uint32_t tag_bits;
  bool semi_sorted;
};

std::vector<Width> AllWidths() {
  std::vector<Width> widths;
  for (const bool semi_sorted : {false, true}) {
    for (uint32_t bits = 1; bits <= 40; ++bits) {
      if (IsCuckooWidth(bits, semi_sorted)) widths.push_back({bits, semi_sorted});
    }
  }
  return widths;
}

TEST(CuckooBucketsTest, EverySlotOfEveryWidthHoldsEveryTagAndNothingElseChanges) {
  Random random(1);
  const auto check = [&]<uint32_t kBits, bool kSemiSorted>(CuckooBuckets<kBits, kSemiSorted>) {
    using Buckets = CuckooBuckets<kBits, kSemiSorted>;
    SCOPED_TRACE(testing::Message() << kBits << " " << kSemiSorted);
    constexpr uint64_t kBuckets = 37;
    std::vector<uint64_t> words(CuckooTable::WordsFor(kBuckets, kBits, kSemiSorted));
    char* const bytes = reinterpret_cast<char*>(words.data());
    std::vector<std::vector<uint32_t>> model(kBuckets, std::vector<uint32_t>(4));
    for (int step = 0; step < 2000; ++step) {
      const uint64_t bucket = random.Uniform(kBuckets);
      const auto slot = static_cast<uint32_t>(random.Uniform(4));
      // Often few values, so that equal tags and equal low parts meet; 0 is "empty".
      const uint64_t values = uint64_t{1} << (random.OneIn(2) ? kBits : std::min(5u, kBits));
      const auto tag = static_cast<uint32_t>(random.Uniform(values));
      const auto before = Buckets::Load(bytes, bucket);
      *std::find(model[bucket].begin(), model[bucket].end(), Buckets::Tags(before)[slot]) = tag;
      Buckets::Store(bytes, bucket, Buckets::With(before, slot, tag));
      const auto now = Buckets::Load(bytes, bucket);
      ASSERT_TRUE(Buckets::IsConsistent(now));
      ASSERT_EQ(Buckets::Tags(now)[Buckets::SlotWith(now, slot, tag)], tag);
      const auto probe = static_cast<uint32_t>(random.Uniform(values));
      for (const uint32_t asked : {probe, tag, 0u}) {
        const bool held = std::count(model[bucket].begin(), model[bucket].end(), asked) > 0;
        ASSERT_EQ(Buckets::Has(now, asked), held);
        const uint32_t found = Buckets::Slot(now, asked);
        ASSERT_EQ(found < 4, held);
        if (held) {
          ASSERT_EQ(Buckets::Tags(now)[found], asked);
        }
      }
    }
    uint64_t count = 0;
    for (uint64_t bucket = 0; bucket < kBuckets; ++bucket) {
      const CuckooTags tags = Buckets::Tags(Buckets::Load(bytes, bucket));
      ASSERT_THAT(tags, testing::UnorderedElementsAreArray(model[bucket]));
      count += std::count_if(tags.begin(), tags.end(), [](uint32_t tag) { return tag != 0; });
    }
    const CuckooTable table(kBuckets, kBits, kSemiSorted, WordArray::CopyOf(words));
    EXPECT_EQ(table.CountTags(), count);
    EXPECT_TRUE(table.IsConsistent());
    words.back() |= uint64_t{1} << 63;
    EXPECT_FALSE(
        CuckooTable(kBuckets, kBits, kSemiSorted, WordArray::CopyOf(words)).IsConsistent());
  };
  for (const Width width : AllWidths()) WithCuckooBuckets(width.tag_bits, width.semi_sorted, check);
}

TEST(CuckooBucketsTest, CodesNumberAscendingQuadruplesInLexicographicOrder) {
  uint32_t next = 0;
  for (uint32_t a = 0; a < 16; ++a) {
    for (uint32_t b = a; b < 16; ++b) {
      for (uint32_t c = b; c < 16; ++c) {
        for (uint32_t d = c; d < 16; ++d) {
          ASSERT_EQ(SemiSortedCodes::Code(a, b, c, d), next);
          ASSERT_EQ(SemiSortedCodes::Parts(next), a | b << 4 | c << 8 | d << 12);
          ++next;
        }
      }
    }
  }
  EXPECT_EQ(next, SemiSortedCodes::kCount);
  for (; next < 1 << SemiSortedCodes::kBits; ++next) EXPECT_EQ(SemiSortedCodes::Parts(next), 0u);
}

// Tags of 5, 9 and 17 bits in semi-sorted tables are where packed tables elsewhere have lost keys.
TEST(CuckooFilterTest, EveryWidthFindsAllKeysErasesThemAndKeepsItsRate) {
  constexpr uint64_t kKeys = 20000;
  constexpr uint64_t kAsked = 400000;
  for (const Width width : AllWidths()) {
    SCOPED_TRACE(testing::Message() << width.tag_bits << " " << width.semi_sorted);
    // Narrow tags have too few other buckets to fill a table of this size.
    const uint64_t keys = width.tag_bits < 8 ? kKeys / 4 : kKeys;
    auto filter = *CuckooFilter::Create({.capacity = kKeys,
                                         .seed = 1,
                                         .tag_bits = width.tag_bits,
                                         .semi_sorted = width.semi_sorted});
    for (uint64_t i = 0; i < keys; ++i) ASSERT_TRUE(filter.Insert(Key(1, i)));
    for (uint64_t i = 0; i < keys; ++i) ASSERT_TRUE(filter.MayContain(Key(1, i)));
    double hits = 0;
    for (uint64_t i = 0; i < kAsked; ++i) hits += filter.MayContain(Key(2, i));
    const double expected = filter.ExpectedFpr() * kAsked;
    EXPECT_NEAR(hits, expected, 5 * std::sqrt(expected + 1) + 0.02 * expected);
    const auto read = CuckooFilter::Deserialize(filter.Serialize());
    ASSERT_TRUE(read.ok()) << read.status();
    for (uint64_t i = 0; i < keys; ++i) {
      ASSERT_TRUE(filter.Erase(Key(1, i)));
      if (i + 1 < keys) {
        ASSERT_TRUE(filter.MayContain(Key(1, keys - 1)));
      }
    }
    EXPECT_EQ(filter.Count(), 0u);
    EXPECT_EQ(filter.Fill(), 0.0);
  }
}

TEST(CuckooFilterTest, BatchesOfEveryWidthEqualSingleCalls) {
  constexpr uint64_t kKeys = 1000;
  for (const Width width : AllWidths()) {
    SCOPED_TRACE(testing::Message() << width.tag_bits << " " << width.semi_sorted);
    auto single = *CuckooFilter::Create(
        {.capacity = kKeys, .tag_bits = width.tag_bits, .semi_sorted = width.semi_sorted});
    auto batch = single;
    std::vector<uint64_t> keys(kKeys + 100);  // more than fit into narrow tags
    for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = Key(9, i);
    const auto expect_equal = [&](const Bitmap& answers, auto&& operation) {
      for (uint64_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(answers[i / 64] >> (i % 64) & 1, uint64_t{operation(keys[i])}) << i;
      }
      EXPECT_EQ(batch.Serialize(), single.Serialize());
    };
    expect_equal(batch.Insert(keys), [&](uint64_t key) { return single.Insert(key); });
    for (uint64_t i = 0; i < keys.size(); i += 2) keys[i] = Key(10, i);  // never inserted
    expect_equal(batch.MayContain(keys), [&](uint64_t key) { return single.MayContain(key); });
    expect_equal(batch.Erase(keys), [&](uint64_t key) { return single.Erase(key); });
  }
}

TEST(CuckooFilterTest, SemiSortedSavesABitAKey) {
  const auto plain = *CuckooFilter::Create({.capacity = 1'000'000, .fpr = 0.001});
  const auto semi =
      *CuckooFilter::Create({.capacity = 1'000'000, .fpr = 0.001, .semi_sorted = true});
  EXPECT_EQ(plain.tag_bits(), 13u);
  EXPECT_NEAR(static_cast<double>(plain.SizeBytes()) / static_cast<double>(semi.SizeBytes()),
              13.0 / 12.0, 1e-3);
}

TEST(CuckooFilterTest, ARefusedInsertChangesNoByte) {
  for (const bool semi_sorted : {false, true}) {
    auto filter = *CuckooFilter::Create(
        {.capacity = 300, .seed = 2, .tag_bits = 9, .semi_sorted = semi_sorted});
    uint64_t refused = 0;
    for (uint64_t i = 0; refused < 200; ++i) {
      const std::string before = filter.Serialize();
      if (filter.Insert(Key(3, i))) continue;
      ++refused;
      ASSERT_EQ(filter.Serialize(), before);
    }
    EXPECT_GT(filter.Fill(), 0.95);
  }
}

TEST(CuckooFilterTest, AKeyGoesInEightTimesAndSurvivesAllErasesButTheLast) {
  auto filter = *CuckooFilter::Create({.capacity = 1000, .seed = 3});
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(filter.Insert(Key(4, 0)));
  EXPECT_FALSE(filter.Insert(Key(4, 0)));
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(filter.MayContain(Key(4, 0)));
    EXPECT_TRUE(filter.Erase(Key(4, 0)));
  }
  EXPECT_FALSE(filter.MayContain(Key(4, 0)));
}

// Two keys of one tag in the same buckets: either one's erase leaves a copy for the other.
TEST(CuckooFilterTest, EraseOfAKeyLeavesACopyForOneThatCollidesWithIt) {
  auto filter = *CuckooFilter::Create({.capacity = 1000, .seed = 3});
  const uint64_t a = Key(5, 0);
  const uint64_t b = a ^ 1;  // the lowest bit decides nothing
  ASSERT_TRUE(filter.Insert(a));
  ASSERT_TRUE(filter.Insert(b));
  EXPECT_TRUE(filter.Erase(a));
  EXPECT_TRUE(filter.MayContain(b));
  EXPECT_TRUE(filter.Erase(b));
  EXPECT_FALSE(filter.MayContain(a));
}

TEST(CuckooFilterTest, ChurnAtFullLoadLosesNothing) {
  Random random(6);
  auto filter = *CuckooFilter::Create({.capacity = 5000, .fpr = 0.001, .seed = 4});
  std::vector<uint64_t> held;
  uint64_t next = 0;
  uint64_t refused = 0;
  while (held.size() < 5000) {
    held.push_back(Key(6, next++));
    ASSERT_TRUE(filter.Insert(held.back()));
  }
  for (int step = 0; step < 50000; ++step) {  // ten times the capacity
    uint64_t& slot = held[random.Uniform(held.size())];
    ASSERT_TRUE(filter.Erase(slot));
    const uint64_t old = slot;
    slot = Key(6, next++);
    if (!filter.Insert(slot)) {
      ++refused;
      slot = old;
      ASSERT_TRUE(filter.Insert(slot));
    }
  }
  for (const uint64_t key : held) ASSERT_TRUE(filter.MayContain(key));
  EXPECT_EQ(refused, 0u);
}

TEST(CuckooFilterTest, AMergeThatDoesNotFitChangesNothing) {
  auto a = *CuckooFilter::Create({.capacity = 1000});
  auto b = *CuckooFilter::Create({.capacity = 1000});
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(a.Insert(Key(7, i)));
    ASSERT_TRUE(b.Insert(Key(8, i)));
  }
  const std::string before = a.Serialize();
  EXPECT_EQ(a.Merge(b).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(a.Serialize(), before);
}

TEST(CuckooFilterTest, WidthsThatCannotBePackedAreRefused) {
  EXPECT_EQ(CuckooFilter::Create({.capacity = 10, .tag_bits = 3}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(
      CuckooFilter::Create({.capacity = 10, .tag_bits = 18, .semi_sorted = true}).status().code(),
      StatusCode::kInvalidArgument);
}

TEST(CuckooFilterTest, TheStoredBytesAreThoseOfVersion1) {
  std::vector<uint64_t> hashes;
  for (const bool semi_sorted : {false, true}) {
    auto filter = *CuckooFilter::Create(
        {.capacity = 20, .fpr = 0.01, .seed = 0x5eed, .semi_sorted = semi_sorted});
    for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(filter.Insert(Mix(i)));
    hashes.push_back(Hash(filter.Serialize(), 0));
  }
  EXPECT_THAT(hashes, testing::ElementsAre(15965654261080203673u, 2005576063338433423u))
      << "bytes changed";
}

}  // namespace
}  // namespace tamis
