#include "tamis/lsm/shared_quotient_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <thread>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"

namespace tamis::lsm {
namespace {

constexpr uint64_t kKept = ~uint64_t{0xffff};

uint64_t Key(uint64_t stream, uint64_t i) { return Mix(Mix(stream) + i) & kKept; }

GracePeriod grace;

std::unique_ptr<SharedQuotientFilter> Make(uint64_t shard_keys) {
  return *SharedQuotientFilter::Create(0.003, &grace, shard_keys);
}

bool Ask(const SharedQuotientFilter& filter, uint64_t hash) {
  const GracePeriod::Guard guard = grace.Enter();
  return filter.MayContain(hash);
}

// All of the model's hashes in the sections; the filter's Keys.
SharedQuotientFilter::Keys KeysOf(std::multiset<uint64_t> model) {
  return [model = std::move(model)](uint32_t first, uint32_t last, std::vector<uint64_t>* hashes) {
    for (const uint64_t hash : model) {
      const uint32_t section = SharedQuotientFilter::SectionOf(hash);
      if (section >= first && section < last) hashes->push_back(hash);
    }
    return true;
  };
}

bool NoKeys(uint32_t, uint32_t, std::vector<uint64_t>*) { return false; }

// Batches come and go against std::multiset, with keys to rebuild from and without; many copies of
// some, and hashes that differ only after what is kept of them.
TEST(SharedQuotientFilterTest, IsTheMultisetOfAppliedHashesAfterAnyGrowth) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto filter = Make(600);
    std::multiset<uint64_t> model;
    const bool has_keys = seed % 2 == 0;
    uint64_t most_excess = 0;
    uint64_t most_shards = 0;
    for (int step = 0; step < 120; ++step) {
      std::vector<uint64_t> added;
      std::vector<uint64_t> removed;
      const bool grow = step / 30 % 2 == 0;
      const uint64_t adds = random.Uniform(grow ? 600 : 30);
      for (uint64_t i = 0; i < adds; ++i) {
        const uint64_t hot = Key(7, random.Uniform(3)) ^ random.Uniform(2) << 16;
        added.push_back(random.OneIn(20) ? hot : Key(seed, random.Uniform(1 << 20)));
      }
      for (const uint64_t hash : model) {
        if (random.OneIn(grow ? 40 : 6)) removed.push_back(hash);
      }
      std::ranges::sort(added);
      const SharedQuotientFilter::Keys keys =
          has_keys && !random.OneIn(4) ? KeysOf(model) : SharedQuotientFilter::Keys(NoKeys);
      filter->Reserve(added, keys);
      filter->Apply(added, removed);
      for (const uint64_t hash : added) model.insert(hash);
      for (const uint64_t hash : removed) model.erase(model.find(hash));
      filter->Trim(has_keys ? KeysOf(model) : SharedQuotientFilter::Keys(NoKeys));
      const SharedQuotientFilter::Figures figures = filter->figures();
      ASSERT_EQ(figures.missed, 0u);
      ASSERT_EQ(figures.passing, 0u);
      ASSERT_EQ(figures.keys, model.size());
      if (step % 10 == 0) {
        ASSERT_TRUE(filter->IsExactly(KeysOf(model)));
      }
      most_excess = std::max(most_excess, figures.excess);
      most_shards = std::max(most_shards, figures.shards);
      for (const uint64_t hash : model) ASSERT_TRUE(Ask(*filter, hash));
    }
    EXPECT_GT(most_excess, 0u);
    if (has_keys) {
      EXPECT_GT(most_shards, 8u);
    }
    EXPECT_GT(filter->figures().doubled, 0u);
    EXPECT_TRUE(filter->IsExactly(KeysOf(model)));
    ASSERT_TRUE(filter->MakeRoom({}, KeysOf(model), 0.25));
    EXPECT_TRUE(filter->IsExactly(KeysOf(model)));
    const std::vector<uint64_t> all(model.begin(), model.end());
    filter->Apply({}, all);
    EXPECT_EQ(filter->figures().missed, 0u);
    EXPECT_EQ(filter->figures().keys, 0u);
    filter->Trim(KeysOf({}));
    EXPECT_EQ(filter->figures().shards, 1u);
  }
}

TEST(SharedQuotientFilterTest, HashesThatShareAPlaceShareTheirCopies) {
  const auto filter = Make(1000);
  const uint64_t one = Key(1, 0);
  const uint64_t other = one ^ uint64_t { 1 } << 16;
  // Sixteen copies of the first are in the filter; the second is beside it, and must stay.
  const std::vector<uint64_t> ones(16, one);
  filter->Apply(ones, {});
  filter->Apply(std::vector{other}, {});
  EXPECT_EQ(filter->figures().excess, 1u);
  filter->Apply({}, ones);
  EXPECT_TRUE(Ask(*filter, other));
  filter->Apply({}, std::vector{other});
  EXPECT_FALSE(Ask(*filter, other));
  EXPECT_EQ(filter->figures().missed, 0u);
}

TEST(SharedQuotientFilterTest, AShardThatIsFullAndHasNoKeysSaysMaybe) {
  const auto filter = Make(1000);
  // All of one line, more than the table of spilled keys has room for.
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 20'000; ++i) hashes.push_back(i << 48);
  filter->Apply(hashes, {});
  EXPECT_EQ(filter->figures().passing, 1u);
  for (const uint64_t hash : hashes) ASSERT_TRUE(Ask(*filter, hash));
  EXPECT_TRUE(Ask(*filter, Key(1, 1)));
  const std::multiset<uint64_t> none;
  filter->Reserve({}, KeysOf(none));
  EXPECT_EQ(filter->figures().passing, 0u);
  EXPECT_FALSE(Ask(*filter, Key(1, 1)));
}

// Copies of a key lie in one line: twenty of each fill lines unevenly, and most of a shard's lines
// would overflow if it were made for as many keys that are all different.
TEST(SharedQuotientFilterTest, ManyCopiesOfEachKeyFindRoom) {
  const auto filter = Make(1 << 16);
  std::multiset<uint64_t> model;
  for (int copy = 0; copy < 20; ++copy) {
    std::vector<uint64_t> added;
    for (uint64_t i = 0; i < 3000; ++i) added.push_back(Key(7, i));
    std::ranges::sort(added);
    filter->Reserve(added, KeysOf(model));
    filter->Apply(added, {});
    model.insert(added.begin(), added.end());
    filter->Trim(KeysOf(model));
    ASSERT_EQ(filter->figures().passing, 0u) << copy;
  }
  EXPECT_EQ(filter->figures().keys, model.size());
  EXPECT_EQ(filter->figures().excess, 3000u * 4);
  EXPECT_LT(filter->figures().rebuilt, 60u);
  EXPECT_TRUE(filter->IsExactly(KeysOf(model)));
  for (uint64_t i = 0; i < 3000; ++i) EXPECT_TRUE(Ask(*filter, Key(7, i)));
}

TEST(SharedQuotientFilterTest, RateAndMemoryAreThoseOfTheFormula) {
  constexpr uint64_t kKeys = 400'000;
  const auto filter = Make(1 << 16);
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < kKeys; ++i) hashes.push_back(Key(3, i));
  std::ranges::sort(hashes);
  ASSERT_EQ(std::ranges::adjacent_find(hashes), hashes.end());
  const auto keys = [&](uint32_t first, uint32_t last, std::vector<uint64_t>* out) {
    std::ranges::copy_if(hashes, std::back_inserter(*out), [&](uint64_t hash) {
      return SharedQuotientFilter::SectionOf(hash) >= first &&
             SharedQuotientFilter::SectionOf(hash) < last;
    });
    return true;
  };
  constexpr uint64_t kAsked = 1'000'000;
  const auto found = [&] {
    double found = 0;
    for (uint64_t i = 0; i < kAsked; ++i) found += Ask(*filter, Key(4, i));
    return found;
  };
  ASSERT_TRUE(filter->MakeRoom({}, keys, 0.02));
  constexpr double kExpected = 0.0027 * kAsked;
  const double bound = kExpected + 5 * std::sqrt(kExpected);
  const double measured = found();
  EXPECT_LT(measured, bound);
  EXPECT_NEAR(filter->figures().expected_fpr * kAsked, measured, 5 * std::sqrt(kExpected));
  EXPECT_LT(8 * static_cast<double>(filter->figures().size_bytes) / kKeys, 13.6);
  // The control: doubled without its keys and filled up again it has twice the rate.
  std::vector<uint64_t> more;
  for (uint64_t i = 0; i < kKeys; ++i) more.push_back(Key(5, i));
  std::ranges::sort(more);
  filter->Reserve(more, NoKeys);
  filter->Apply(more, {});
  EXPECT_GT(found(), bound);
}

TEST(SharedQuotientFilterTest, ReadersFindWhatStaysWhileAWriterChangesAndRebuilds) {
  const auto filter = Make(300);
  std::multiset<uint64_t> model;
  std::vector<uint64_t> stay;
  for (uint64_t i = 0; i < 500; ++i) stay.push_back(Key(5, i));
  std::ranges::sort(stay);
  model.insert(stay.begin(), stay.end());
  filter->Reserve(stay, KeysOf({}));
  filter->Apply(stay, {});
  std::atomic<bool> done = false;
  std::atomic<uint64_t> rounds = 0;
  std::atomic<uint64_t> lost = 0;
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!done.load()) {
        for (const uint64_t hash : stay) lost += !Ask(*filter, hash);
        ++rounds;
      }
    });
  }
  Random random(9);
  for (uint64_t round = 0; round < 10 || rounds.load() < 10; ++round) {
    std::vector<uint64_t> come;
    for (uint64_t i = 0; i < 800; ++i) come.push_back(Key(6 + round, i));
    std::ranges::sort(come);
    filter->Reserve(come, KeysOf(model));
    filter->Apply(come, {});
    std::multiset<uint64_t> both = model;
    both.insert(come.begin(), come.end());
    filter->Trim(KeysOf(both));
    filter->Apply({}, come);
    filter->Trim(KeysOf(model));
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(lost, 0u);
  EXPECT_EQ(filter->figures().missed, 0u);
}

}  // namespace
}  // namespace tamis::lsm
