// Properties of the counting filters alone: vectors against single lanes, counters that stick, bits
// that follow their counters, golden bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tamis/base/random.h"
#include "tamis/filter/blocked_split_counting_bloom_filter.h"
#include "tamis/filter/counting_bloom_filter.h"
#include "tamis/filter/internal/counter_block.h"
#include "tamis/filter/projected_counting_bloom_filter.h"
#include "tamis/filter/testing/filters.h"
#include "tamis/filter/testing/targets.h"

namespace tamis {
namespace {

TEST(CounterBlockTest, EveryTargetDoesWhatSingleLanesDo) {
  Random random(1);
  ForEachTarget([&] {
    const auto functions = CounterBlockFunctions::ForThisProcessor();
    std::array<uint64_t, kCounterBlockWords> block{};
    std::vector<uint32_t> held;
    for (int step = 0; step < 20000; ++step) {
      const bool raise = held.size() < 60 && random.OneIn(2);
      if (!raise && held.empty()) continue;
      const auto low = static_cast<uint32_t>(raise ? random.Uniform(6) * 0x01000193
                                                   : held[random.Uniform(held.size())]);
      std::array<uint64_t, kCounterBlockWords> expected = block;
      CounterChange change;
      bool contained = true;
      for (uint32_t lane = 0; lane < kCounterBlockWords; ++lane) {
        const uint32_t shift = CounterBlockShift(low, lane);
        const uint64_t counter = block[lane] >> shift & 15;
        contained &= counter != 0;
        if (raise) {
          change.zeros += counter == 0;
          change.sticky += counter == 14;
          expected[lane] += (counter < 15 ? uint64_t{1} : 0) << shift;
        } else {
          change.zeros += counter == 1;
          change.sticky += counter == 15;
          expected[lane] -= (counter < 15 ? uint64_t{1} : 0) << shift;
        }
      }
      ASSERT_EQ(functions.test(block.data(), low), contained);
      CounterChange done;
      if (!raise && !contained) {
        const auto before = block;
        ASSERT_FALSE(functions.lower(block.data(), low, &done));
        ASSERT_EQ(block, before);
        ASSERT_EQ(done.zeros + done.sticky, 0u);
        continue;
      }
      if (raise) {
        functions.raise(block.data(), low, &done);
      } else {
        ASSERT_TRUE(functions.lower(block.data(), low, &done));
      }
      ASSERT_EQ(block, expected);
      ASSERT_EQ(done.zeros, change.zeros);
      ASSERT_EQ(done.sticky, change.sticky);
      if (raise) {
        held.push_back(low);
      } else {
        held.erase(std::find(held.begin(), held.end(), low));
      }
    }
  });
}

template <class F>
class StickyCounterTest : public testing::Test {};
using CountingFilters = testing::Types<CountingBloomFilter, BlockedSplitCountingBloomFilter,
                                       ProjectedCountingBloomFilter>;
TYPED_TEST_SUITE(StickyCounterTest, CountingFilters);

TYPED_TEST(StickyCounterTest, AKeyInsertedFifteenTimesIsNeverLost) {
  auto filter = *TypeParam::Create({.capacity = 1000, .fpr = 0.01});
  for (int i = 0; i < 14; ++i) filter.Insert(Key(1, 0));
  EXPECT_EQ(filter.saturated_count(), 0u);
  for (int i = 0; i < 86; ++i) filter.Insert(Key(1, 0));
  const uint64_t sticky = filter.saturated_count();
  EXPECT_GE(sticky, 6u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(filter.Erase(Key(1, 0)));
    EXPECT_TRUE(filter.MayContain(Key(1, 0)));
  }
  EXPECT_EQ(filter.ignored_decrements(), sticky * 100);
  EXPECT_EQ(filter.Count(), 0u);
}

TYPED_TEST(StickyCounterTest, MergeWithItselfCountsAllTwice) {
  auto filter = *TypeParam::Create({.capacity = 1000, .fpr = 1e-4});
  for (uint64_t i = 0; i < 1000; ++i) filter.Insert(Key(2, i));
  ASSERT_TRUE(filter.Merge(filter).ok());
  EXPECT_EQ(filter.Count(), 2000u);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(filter.Erase(Key(2, i)));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(filter.MayContain(Key(2, i)));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(filter.Erase(Key(2, i)));
  EXPECT_EQ(filter.Fill(), 0.0);
}

// Filters that take many keys at a time.
template <class F>
class CountingBatchTest : public testing::Test {};
using BatchFilters = testing::Types<BlockedSplitCountingBloomFilter, ProjectedCountingBloomFilter>;
TYPED_TEST_SUITE(CountingBatchTest, BatchFilters);

TYPED_TEST(CountingBatchTest, BatchesInsertAndEraseAsSingleKeysDo) {
  ForEachTarget([&] {
    auto one = *TypeParam::Create({.capacity = 1000, .fpr = 0.01});
    auto batch = one;
    const auto expect_equal = [&](const Bitmap& answers, const std::vector<uint64_t>& keys,
                                  auto&& operation) {
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(answers[i / 64] >> (i % 64) & 1, uint64_t{operation(keys[i])}) << i;
      }
      EXPECT_EQ(answers.back() >> (keys.size() % 64), 0u);
      EXPECT_EQ(one.Serialize(), batch.Serialize());
      EXPECT_EQ(one.Count(), batch.Count());
    };
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < 777; ++i) keys.push_back(Key(3, i % 700));
    expect_equal(batch.Insert(keys), keys, [&](uint64_t key) { return one.Insert(key); });
    std::vector<uint64_t> others = keys;
    for (uint64_t i = 0; i < others.size(); i += 2) others[i] = Key(13, i);  // never inserted
    const auto contains = [&](uint64_t key) { return one.MayContain(key); };
    expect_equal(batch.MayContain(others), others, contains);
    // The second time most of them are not there any more.
    for (const auto& erased : {keys, others}) {
      expect_equal(batch.Erase(erased), erased, [&](uint64_t key) { return one.Erase(key); });
    }
    EXPECT_EQ(batch.Count(), 0u);
  });
}

TEST(ProjectedCountingBloomFilterTest, BitsFollowTheirCountersThroughRandomOperations) {
  Random random(4);
  auto filter = *ProjectedCountingBloomFilter::Create({.capacity = 50, .fpr = 0.05});
  std::vector<uint64_t> held;
  for (int step = 0; step < 20000; ++step) {
    if (held.size() < 100 && random.OneIn(2)) {
      held.push_back(Key(4, random.Uniform(60)));
      filter.Insert(held.back());
    } else if (!held.empty()) {
      EXPECT_TRUE(filter.Erase(held.back()));
      held.pop_back();
    }
    // Reading back fails unless bits and counters agree.
    if (step % 50 == 0) {
      ASSERT_TRUE(ProjectedCountingBloomFilter::Deserialize(filter.Serialize()).ok());
    }
  }
}

TEST(ProjectedCountingBloomFilterTest, ReadersFindWhatStaysWhileAWriterChangesTheRest) {
  auto filter = *ProjectedCountingBloomFilter::Create({.capacity = 2000, .fpr = 0.05});
  for (uint64_t i = 0; i < 1000; ++i) filter.Insert(Key(5, i));
  std::atomic<bool> done = false;
  std::atomic<uint64_t> asked = 0;
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!done.load()) {
        for (uint64_t i = 0; i < 1000; ++i) {
          ASSERT_TRUE(filter.MayContainWhileWritten(Key(5, i)));
        }
        ++asked;
      }
    });
  }
  for (uint64_t round = 0; round < 20 || asked.load() < 20; ++round) {
    for (uint64_t i = 0; i < 1000; ++i) filter.Insert(Key(6 + round, i));
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(filter.Erase(Key(6 + round, i)));
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

template <class F>
uint64_t GoldenHash() {
  auto filter = *F::Create({.capacity = 20, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 20; ++i) filter.Insert(Mix(i));
  return Hash(filter.Serialize(), 0);
}

TEST(CountingFiltersTest, TheStoredBytesAreThoseOfVersion1) {
  EXPECT_EQ(GoldenHash<CountingBloomFilter>(), 4513496454186101115u) << "bytes changed";
  EXPECT_EQ(GoldenHash<BlockedSplitCountingBloomFilter>(), 15413913220528997894u)
      << "bytes changed";
  EXPECT_EQ(GoldenHash<ProjectedCountingBloomFilter>(), 533996292133073517u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
