#include "tamis/filter/scalable_split_counting_bloom_filter.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "tamis/base/random.h"

namespace tamis {
namespace {

uint64_t Key(uint64_t i) { return Mix(i + 1000); }

TEST(ScalableSplitCountingBloomFilterTest, LayersAreAddedWhenHalfOfTheOpenOneIsInUse) {
  auto filter = *ScalableSplitCountingBloomFilter::Create({.capacity = 1000, .fpr = 0.001});
  EXPECT_EQ(filter.layers(), 1u);
  uint32_t last = 0;
  for (uint64_t i = 0; i < 5000; ++i) last = std::max(last, filter.Insert(Key(i)));
  EXPECT_GE(filter.layers(), 5u);
  EXPECT_LE(filter.layers(), 6u);
  EXPECT_EQ(last, filter.layers() - 1);
  for (uint32_t i = 0; i + 1 < filter.layers(); ++i) {
    EXPECT_TRUE(filter.layer(i).IsHalfFull());
    EXPECT_LT(filter.layer(i).Fill(), 0.502);
  }
}

TEST(ScalableSplitCountingBloomFilterTest, AKeyGoesToTheFirstLayerThatMatchesIt) {
  auto filter = *ScalableSplitCountingBloomFilter::Create({.capacity = 100, .fpr = 0.001});
  EXPECT_EQ(filter.Insert(Key(0)), 0u);
  for (uint64_t i = 1; i < 350; ++i) filter.Insert(Key(i));
  ASSERT_GE(filter.layers(), 3u);
  EXPECT_EQ(filter.Insert(Key(0)), 0u);
  EXPECT_EQ(filter.FindLayer(Key(0)), 0u);
  EXPECT_EQ(filter.FindLayer(Key(100000)), std::nullopt);
}

TEST(ScalableSplitCountingBloomFilterTest, SpaceOfErasedKeysIsUsedAgain) {
  auto filter = *ScalableSplitCountingBloomFilter::Create({.capacity = 500, .fpr = 0.001});
  for (uint64_t i = 0; i < 1500; ++i) filter.Insert(Key(i));
  const uint32_t layers = filter.layers();
  for (uint64_t i = 0; i < 1200; ++i) filter.Erase(Key(i));
  for (uint64_t i = 2000; i < 3000; ++i) filter.Insert(Key(i));
  EXPECT_EQ(filter.layers(), layers);
}

// The smallest case of the rule: one key really in layer 1 that layer 0 also matches.
TEST(ScalableSplitCountingBloomFilterTest, EraseTouchesNothingWhenTwoLayersMatch) {
  for (const bool fault : {false, true}) {
    ScalableSplitCountingBloomFilter filter(SplitGeometry{2, 24});
    filter.set_erase_first_match_for_test(fault);
    std::vector<uint64_t> held;
    for (uint64_t i = 0; filter.layers() < 2; ++i) {
      held.push_back(Key(i));
      filter.Insert(Key(i));
    }
    // Keys now go to layer 1 unless layer 0 matches; fill layer 0's gaps by erasing and inserting
    // until it matches a key that lies in layer 1.
    Random random(5);
    const uint64_t victim = held.back();
    ASSERT_EQ(filter.FindLayer(victim), 1u);
    while (filter.FindLayer(victim) == 1u) {
      const size_t i = random.Uniform(held.size() - 1);
      if (filter.Erase(held[i]) == EraseOutcome::kErased) {
        held[i] = random();
        filter.Insert(held[i]);
      }
      ASSERT_LE(filter.stuck_count(), 50u) << "layer 0 does not come to match the victim";
    }
    const auto projections = [&] {
      std::vector<std::vector<uint64_t>> all;
      for (uint32_t i = 0; i < filter.layers(); ++i) all.push_back(filter.Projection(i));
      return all;
    };
    const auto before = projections();
    const uint64_t stuck = filter.stuck_count();
    const EraseOutcome outcome = filter.Erase(victim);
    EXPECT_EQ(outcome, fault ? EraseOutcome::kErased : EraseOutcome::kStuck);
    EXPECT_EQ(filter.stuck_count(), fault ? stuck : stuck + 1);
    size_t lost = 0;
    for (const uint64_t key : held) lost += !filter.MayContain(key);
    if (fault) {
      EXPECT_GT(lost, 0u);
    } else {
      EXPECT_EQ(lost, 0u);
      EXPECT_EQ(projections(), before);
    }
  }
}

// Random operations on layers far too small, so that everything happens: false matches, stuck
// erases, sticky counters, layers that open again. Returns how many times a held key was missing.
int LostKeys(uint64_t seed, bool fault, uint64_t* stuck) {
  Random random(seed);
  ScalableSplitCountingBloomFilter filter(SplitGeometry{3, 40}, seed);
  filter.set_erase_first_match_for_test(fault);
  std::unordered_map<uint64_t, int> model;
  std::vector<uint64_t> held;
  std::vector<std::vector<uint64_t>> mirror = {filter.Projection(0)};
  const auto on_flip = [&](uint32_t layer, uint64_t position, bool set) {
    while (mirror.size() <= layer) mirror.emplace_back(mirror[0].size());
    uint64_t& word = mirror[layer][position / 64];
    EXPECT_NE(word >> (position % 64) & 1, static_cast<uint64_t>(set));
    word ^= uint64_t{1} << (position % 64);
  };
  int lost = 0;
  for (int step = 0; step < 20000; ++step) {
    if (held.empty() || (held.size() < 120 && random.OneIn(2))) {
      held.push_back(Key(random.Uniform(300)));
      ++model[held.back()];
      filter.Insert(held.back(), on_flip);
    } else {
      std::swap(held[random.Uniform(held.size())], held.back());
      const uint64_t key = held.back();
      held.pop_back();
      if (--model[key] == 0) model.erase(key);
      filter.Erase(key, on_flip);
    }
    for (const auto& [key, count] : model) lost += !filter.MayContain(key);
    if (step % 500 == 0) {
      for (uint32_t i = 0; i < filter.layers(); ++i) EXPECT_EQ(filter.Projection(i), mirror[i]);
    }
    if (fault && lost > 0) break;
  }
  *stuck += filter.stuck_count();
  return lost;
}

TEST(ScalableSplitCountingBloomFilterTest, NoKeyIsLostWhereLayersMatchFalselyAllTheTime) {
  uint64_t stuck = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(LostKeys(seed, false, &stuck), 0) << seed;
  EXPECT_GT(stuck, 100u);
}

TEST(ScalableSplitCountingBloomFilterTest, TheSameTestFindsLostKeysWhenTheFirstMatchIsErased) {
  uint64_t stuck = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) EXPECT_GT(LostKeys(seed, true, &stuck), 0) << seed;
}

TEST(ScalableSplitCountingBloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter =
      *ScalableSplitCountingBloomFilter::Create({.capacity = 10, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 30; ++i) filter.Insert(Mix(i));
  ASSERT_GT(filter.layers(), 1u);
  EXPECT_EQ(Hash(filter.Serialize(), 0), 17851456502403443125u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
