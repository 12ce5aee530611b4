#include "tamis/redis/cuckoo_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/redis/testing/cuckoo_chains.h"
#include "tamis/redis/testing/cuckoo_model.h"

namespace tamis::redis {
namespace {

TEST(CuckooChain, PublishedDumpHasTheseBytes) {
  CuckooChain chain = Make({.capacity = 8});
  EXPECT_EQ(chain.Insert("item1", kDefault), Inserted::kYes);
  EXPECT_EQ(AllBytes(chain), std::string("\0\0\0\0\x07\0\0\0", 8));
  EXPECT_EQ(chain.Header(), std::string("\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                        "\x01\0\0\0\0\0\0\0\x02\0\x14\0\x01\0",
                                        38));
}

TEST(CuckooChain, ReservedForThousandHasThePublishedSize) {
  EXPECT_EQ(Make({.capacity = 1000}).SizeBytes(), 1080u);
}

TEST(CuckooChain, RandomCommandsAreThoseOfTheModel) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    // Buckets of more than 8 slots are searched in another way.
    const uint64_t bucket_size = 1 + random.Uniform(random.OneIn(4) ? 30 : 6);
    const uint64_t capacity = bucket_size * 2 + random.Uniform(200);
    const uint64_t iterations = 1 + random.Uniform(30);
    const uint64_t expansion = random.OneIn(4) ? 0 : uint64_t{1} << random.Uniform(3);
    CuckooChain chain = Make({.capacity = capacity,
                              .bucket_size = static_cast<uint16_t>(bucket_size),
                              .max_iterations = static_cast<uint16_t>(iterations),
                              .expansion = static_cast<uint16_t>(expansion)});
    CuckooModel model(capacity, bucket_size, iterations, expansion);
    const CuckooChain::Limits limits = {.tables = 1 + random.Uniform(6)};
    std::map<std::string, uint64_t> copies;  // inserted and not yet erased
    const uint64_t range = 50 + random.Uniform(2000);
    const uint64_t eager = 1 + random.Uniform(4);
    for (int i = 0; i < 10000; ++i) {
      const std::string item = std::to_string(random.Uniform(range));
      if (random.Uniform(5) < eager) {
        const Inserted result = chain.Insert(item, limits);
        ASSERT_EQ(result, model.Insert(item, limits.tables));
        if (result == Inserted::kYes) ++copies[item];
      } else if (const auto it = copies.find(item); it != copies.end()) {
        ASSERT_TRUE(chain.Erase(item));
        ASSERT_TRUE(model.Erase(item));
        if (--it->second == 0) copies.erase(it);
      }
      ASSERT_EQ(chain.Count(item), model.Count(item));
      if (random.OneIn(1000)) chain = Load(chain);
      if (random.OneIn(1000)) chain = std::move(*chain.Copy());
      if (random.OneIn(100)) {
        ASSERT_EQ(AllBytes(chain), model.AllBytes());
      }
    }
    ASSERT_EQ(AllBytes(chain), model.AllBytes());
    ASSERT_EQ(chain.items(), model.items());
    ASSERT_EQ(chain.deletes(), model.deletes());
    for (const auto& [item, count] : copies) {
      ASSERT_TRUE(chain.MayContain(item));
      ASSERT_GE(chain.Count(item), count);
    }
    std::vector<std::string> items;
    for (uint64_t i = 0; i < range; ++i) items.push_back(std::to_string(i));
    const std::vector<std::string_view> views(items.begin(), items.end());
    const auto answers = std::make_unique<bool[]>(views.size());
    chain.MayContain(views, answers.get());
    for (size_t i = 0; i < items.size(); ++i) ASSERT_EQ(answers[i], model.Count(items[i]) > 0);
  }
}

TEST(CuckooChain, BatchesAreInsertedAsOneByOne) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto bucket_size = static_cast<uint16_t>(1 + random.Uniform(random.OneIn(3) ? 20 : 4));
    const CuckooChain::Options options = {
        .capacity = bucket_size * (2 + random.Uniform(40)),
        .bucket_size = bucket_size,
        .max_iterations = static_cast<uint16_t>(1 + random.Uniform(20)),
        .expansion = static_cast<uint16_t>(random.Uniform(4))};
    CuckooChain chain = Make(options), one_by_one = Make(options);
    EXPECT_EQ(chain.expansion(), options.expansion == 3 ? 4 : options.expansion);
    EXPECT_EQ(chain.tables()[0].size(), CuckooChain::FirstTableBytes(options));
    const CuckooChain::Limits limits = {
        .tables = 1 + random.Uniform(4),
        .bytes = random.OneIn(2) ? kNoLimit : 100 + random.Uniform(400)};
    for (int batch = 0; batch < 15; ++batch) {
      const bool only_new = random.OneIn(2);
      std::vector<std::string> items;
      for (uint64_t n = random.Uniform(80); n > 0; --n) {
        items.push_back(std::to_string(random.Uniform(400)));
      }
      const std::vector<std::string_view> views(items.begin(), items.end());
      std::vector<Inserted> answers(items.size(), Inserted::kPartial);
      chain.Insert(views, only_new, limits, answers.data());
      for (size_t i = 0; i < items.size(); ++i) {
        const bool there = one_by_one.MayContain(items[i]);
        const Inserted wanted =
            only_new ? one_by_one.InsertNew(items[i], limits) : one_by_one.Insert(items[i], limits);
        ASSERT_EQ(answers[i], wanted);
        ASSERT_EQ(answers[i] == Inserted::kThere, only_new && there);
        ASSERT_TRUE(answers[i] != Inserted::kYes || one_by_one.MayContain(items[i]));
      }
      ASSERT_EQ(chain.Header(), one_by_one.Header());
      ASSERT_EQ(AllBytes(chain), AllBytes(one_by_one));
    }
    EXPECT_EQ(chain.SizeBytes(), 40 + 16 * chain.tables().size() + AllBytes(chain).size());
    EXPECT_LE(chain.SizeBytes(), std::max(limits.bytes, 56 + chain.tables()[0].size()));
    chain.Spoil();
    std::vector<Inserted> answers(2, Inserted::kYes);
    chain.Insert(std::vector<std::string_view>{"x", "y"}, false, limits, answers.data());
    EXPECT_EQ(answers, (std::vector<Inserted>(2, Inserted::kPartial)));
  }
}

// A header that says how many items there are is believed only as far as there are places.
TEST(CuckooChain, ItemsAreNeverMoreThanPlaces) {
  auto chain = CuckooChain::FromParts(PartsOf(ThreeTables()), kNoLimit);
  CuckooChain::Parts parts = PartsOf(*chain);
  parts.items = AllBytes(*chain).size();
  chain = CuckooChain::FromParts(std::move(parts), kNoLimit);
  ASSERT_TRUE(chain.ok());
  for (int i = 0; i < 20; ++i) {
    chain->Insert("another" + std::to_string(i), kDefault);
    EXPECT_LE(chain->items(), AllBytes(*chain).size());
    (void)chain->Compact(0, kNoLimit, true);
    EXPECT_LE(chain->items(), AllBytes(*chain).size());
  }
}

// An erase would take too long.
TEST(CuckooChain, EraseCompactsSmallChainsAlone) {
  for (const uint64_t capacity : {uint64_t{1} << 18, uint64_t{1} << 20}) {
    CuckooChain chain = Make({.capacity = capacity});
    std::vector<std::string> items;
    for (uint64_t i = 0; chain.tables().size() < 2; ++i) {
      items.push_back(std::to_string(i));
      ASSERT_EQ(chain.Insert(items.back(), kDefault), Inserted::kYes);
    }
    for (size_t i = 0; i < items.size() / 4; ++i) ASSERT_TRUE(chain.Erase(items[i]));
    // A compaction begins the count of deletes again.
    EXPECT_EQ(chain.deletes() < items.size() / 4, capacity < 1 << 20);
  }
}

TEST(CuckooChain, TakesFreeSlotsAtTheLimitOfTables) {
  CuckooChain chain = Make({.capacity = 64, .max_iterations = 1});
  const CuckooChain::Limits limits = {.tables = 2};
  uint64_t refused = 0;
  uint64_t taken_afterwards = 0;
  for (int i = 0; i < 300; ++i) {
    if (chain.Insert(std::to_string(i), limits) == Inserted::kTooManyTables) {
      ++refused;
    } else if (refused > 0) {
      ++taken_afterwards;
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(taken_afterwards, 0u);
  EXPECT_EQ(chain.tables().size(), 2u);
}

TEST(CuckooChain, RefusalLeavesEverythingAsItWas) {
  CuckooChain chain = Make({.capacity = 16, .expansion = 0});
  std::string before;
  for (int i = 0; i < 200; ++i) {
    before = AllBytes(chain) + chain.Header();
    if (chain.Insert(std::to_string(i), kDefault) == Inserted::kFull) {
      EXPECT_EQ(AllBytes(chain) + chain.Header(), before);
    }
  }
  EXPECT_EQ(chain.Insert("x", {.bytes = 0}), Inserted::kFull);
  CuckooChain grows = Make({.capacity = 16});
  int items = 0;
  while (grows.Insert(std::to_string(items), {.bytes = 100}) == Inserted::kYes) ++items;
  EXPECT_LE(grows.SizeBytes(), 100u);
  EXPECT_EQ(grows.Insert(std::to_string(items), {.bytes = 100}), Inserted::kTooLarge);
}

TEST(CuckooChain, TableIsMadeIfTheChainIsNotLargerThanAllowedAfterwards) {
  CuckooChain chain = Make({.capacity = 16, .expansion = 2});
  for (int i = 0; chain.tables().size() < 5; ++i) {
    const std::string item = std::to_string(i);
    CuckooChain grown = std::move(*chain.Copy());
    ASSERT_EQ(grown.Insert(item, kDefault), Inserted::kYes);
    if (grown.tables().size() > chain.tables().size()) {
      EXPECT_EQ(chain.Insert(item, {.bytes = grown.SizeBytes() - 1}), Inserted::kTooLarge);
    }
    EXPECT_EQ(chain.Insert(item, {.bytes = grown.SizeBytes()}), Inserted::kYes);
    ASSERT_EQ(chain.Header(), grown.Header());
  }
}

TEST(CuckooChain, HundredThousandCopiesOfOneItemAreRefusedAfterTheLimit) {
  CuckooChain chain = Make({.capacity = 1024});
  uint64_t inserted = 0;
  for (int i = 0; i < 100'000; ++i) inserted += chain.Insert("x", kDefault) == Inserted::kYes;
  EXPECT_EQ(inserted, 32u * 4);  // two buckets of two slots in each table
  EXPECT_EQ(chain.Count("x"), inserted);
  for (uint64_t i = 0; i < inserted; ++i) EXPECT_TRUE(chain.Erase("x"));
  EXPECT_FALSE(chain.Erase("x"));
  EXPECT_EQ(chain.items(), 0u);
}

}  // namespace
}  // namespace tamis::redis
