#include "tamis/filter/split_counting_bloom_filter.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"

namespace tamis {
namespace {

bool TestPosition(const std::vector<uint64_t>& bits, uint64_t position) {
  return bits[position / 64] >> (position % 64) & 1;
}

TEST(SplitCountingBloomFilterTest, FlipsAreExactlyTheChangesOfTheProjection) {
  Random random(1);
  SplitCountingBloomFilter filter(SplitGeometry{5, 77});
  std::vector<uint64_t> mirror(filter.Projection().size());
  const auto on_flip = [&](uint64_t position, bool set) {
    ASSERT_NE(TestPosition(mirror, position), set);
    mirror[position / 64] ^= uint64_t{1} << (position % 64);
  };
  std::vector<uint64_t> held;
  for (int step = 0; step < 20000; ++step) {
    if (held.size() < 60 && random.OneIn(2)) {
      held.push_back(random.Uniform(40));
      filter.Insert(Mix(held.back()), on_flip);
    } else if (!held.empty()) {
      EXPECT_TRUE(filter.Erase(Mix(held.back()), on_flip));
      held.pop_back();
    }
    ASSERT_EQ(filter.Projection(), mirror) << step;
  }
}

TEST(SplitCountingBloomFilterTest, AValueInsertedFifteenTimesSticksAndIsNeverLost) {
  SplitCountingBloomFilter filter(SplitGeometry{4, 100});
  const uint64_t hash = Mix(1);
  for (int i = 0; i < 14; ++i) filter.Insert(hash);
  EXPECT_EQ(filter.saturated_count(), 0u);
  for (int i = 0; i < 100; ++i) filter.Insert(hash);
  EXPECT_EQ(filter.saturated_count(), 4u);
  for (int i = 0; i < 114; ++i) {
    EXPECT_TRUE(filter.Erase(hash));
    EXPECT_TRUE(filter.MayContain(hash));
  }
  EXPECT_EQ(filter.ignored_decrements(), 4u * 114u);
  EXPECT_EQ(filter.Count(), 0u);
}

TEST(SplitCountingBloomFilterTest, MergeAddsCountersAndSticksAtFifteen) {
  SplitCountingBloomFilter a(SplitGeometry{4, 1000});
  SplitCountingBloomFilter b(SplitGeometry{4, 1000});
  for (int i = 0; i < 9; ++i) {
    a.Insert(Mix(1));
    b.Insert(Mix(1));
  }
  b.Insert(Mix(2));
  ASSERT_TRUE(a.Merge(b).ok());
  EXPECT_GE(a.saturated_count(), 4u);
  EXPECT_TRUE(a.Erase(Mix(2)));
  EXPECT_TRUE(a.MayContain(Mix(1)));
}

TEST(SplitCountingBloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *SplitCountingBloomFilter::Create({.capacity = 10, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 10; ++i) filter.Insert(Mix(i));
  EXPECT_EQ(Hash(filter.Serialize(), 0), 4542133228470578022u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
