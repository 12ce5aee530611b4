#include "tamis/redis/seeded_chain.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tamis/base/random.h"

namespace tamis::redis {
namespace {

constexpr uint64_t kNoLimit = ~uint64_t{0};

SeededChain::Seed TestSeed() {
  SeededChain::Seed seed;
  for (size_t i = 0; i < seed.size(); ++i) seed[i] = static_cast<uint8_t>(i * 7 + 3);
  return seed;
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// Made by a program of the crates bloomfilter 3.0.2 and bincode 1.3.3: rate 0.01, capacity 20,
// expansion 2, tightening 0.5, TestSeed(); item0 to item19, and in a second link item20 to item26.
const std::string& Published() {
  static const std::string bytes = FromHex(
      "01020000007b14ae47e17a843f000000000000e03f010200000000000000450000000000000001180000000000"
      "000007000000030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dc39d738f67cc829"
      "af6b9c5bb31ac8cf8bec74be47682d841b14000000000000001400000000000000650000000000000001380000"
      "000000000008000000030a11181f262d343b424950575e656c737a81888f969da4abb2b9c0c7ced5dc21020080"
      "0214000000010c001050000220a49000000300008000a208004028a00008000000148000000084104"
      "0c0010001a402008200004007000000000000002800000000000000");
  return bytes;
}

SeededChain Make(SeededChain::Options options) {
  auto chain = SeededChain::Create(options);
  EXPECT_TRUE(chain.ok()) << chain.status();
  return std::move(*chain);
}

TEST(SeededChain, HasTheBytesOfTheCrate) {
  SeededChain chain = Make({.error_rate = 0.01, .capacity = 20, .seed = TestSeed()});
  for (int i = 0; i < 27; ++i) {
    EXPECT_EQ(chain.Add("item" + std::to_string(i), kNoLimit), SeededChain::Added::kNew) << i;
  }
  EXPECT_EQ(chain.Dump(), Published());
}

TEST(SeededChain, AnswersAsTheCrateDoes) {
  auto chain = SeededChain::FromDump(Published());
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (int i = 0; i < 27; ++i) EXPECT_TRUE(chain->MayContain("item" + std::to_string(i))) << i;
  std::vector<int> found;
  for (int i = 0; i < 20000; ++i) {
    if (chain->MayContain("absent" + std::to_string(i))) found.push_back(i);
  }
  EXPECT_EQ(found.size(), 283u);
  found.resize(10);
  EXPECT_EQ(found, (std::vector<int>{2, 142, 209, 230, 235, 316, 327, 375, 407, 427}));
  EXPECT_EQ(chain->size(), 27u);
  EXPECT_EQ(chain->Capacity(), 60u);
  EXPECT_EQ(chain->seed(), TestSeed());
  EXPECT_EQ(chain->Dump(), Published());
}

TEST(SeededChain, GeometryIsThatOfTheCrate) {
  const struct {
    uint64_t capacity;
    double rate;
    uint64_t bytes;
    uint32_t hashes;
  } rows[] = {{1, 0.5, 1, 6},          {100, 0.01, 120, 7},
              {1000, 0.001, 1798, 10}, {100000, 0.01, 119814, 7},
              {7, 0.3, 3, 2},          {123456, 0.00005, 318097, 14}};
  for (const auto& row : rows) {
    const SeededChain chain = Make({.error_rate = row.rate, .capacity = row.capacity});
    EXPECT_EQ(chain.links()[0].bits / 8, row.bytes) << row.capacity;
    EXPECT_EQ(chain.links()[0].hashes, row.hashes) << row.capacity;
    EXPECT_EQ(chain.SizeBytes(), 48 + 8 + 24 + 184 + row.bytes);
    EXPECT_FALSE(chain.random_seed());
  }
}

TEST(SeededChain, GrowsUntilSomethingForbidsIt) {
  SeededChain fixed = Make({.capacity = 10, .expansion = 0});
  int added = 0;
  while (fixed.Add(std::to_string(added), kNoLimit) != SeededChain::Added::kFull) ++added;
  EXPECT_EQ(fixed.size(), 10u);
  SeededChain small = Make({.capacity = 10});
  SeededChain::Added last = SeededChain::Added::kNew;
  for (int i = 0; last == SeededChain::Added::kNew || last == SeededChain::Added::kPerhaps; ++i) {
    last = small.Add(std::to_string(i), 2000);
  }
  EXPECT_EQ(last, SeededChain::Added::kTooLarge);
  EXPECT_LE(small.SizeBytes(), 2000u);
  const auto growth = SeededChain::GrowthOf(small.FirstOptions(), kNoLimit, 2000);
  EXPECT_EQ(growth.capacity, small.Capacity());
  EXPECT_EQ(growth.end, SeededChain::Added::kTooLarge);
  EXPECT_EQ(SeededChain::GrowthOf(small.FirstOptions(), growth.capacity, 2000).end,
            SeededChain::Added::kNew);
  EXPECT_EQ(
      SeededChain::GrowthOf({.capacity = 1, .expansion = 1, .tightening = 1e-100}, 100, kNoLimit)
          .end,
      SeededChain::Added::kRateIsZero);
  // Links that are as good as equal: more links than GrowthOf counts.
  const auto many = SeededChain::GrowthOf({.capacity = 3, .expansion = 1, .tightening = 0.9999999},
                                          kNoLimit, kNoLimit);
  EXPECT_EQ(many.capacity, 3 * SeededChain::kGrowthLinks);
  EXPECT_EQ(many.end, SeededChain::Added::kTooLarge);
  // The example of valkey-bloom's documentation.
  EXPECT_EQ(SeededChain::GrowthOf({}, 26214300, 128 << 20).end, SeededChain::Added::kNew);
  EXPECT_EQ(SeededChain::GrowthOf({}, 26214301, 128 << 20).end, SeededChain::Added::kTooLarge);
}

TEST(SeededChain, SpoiledContainsEverythingAlsoWhenItIsLoaded) {
  SeededChain chain = Make({.capacity = 10});
  EXPECT_FALSE(chain.MayContain("x"));
  chain.Spoil();
  EXPECT_TRUE(chain.MayContain("x"));
  auto loaded = SeededChain::FromDump(chain.Dump());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->MayContain("y"));
  EXPECT_EQ(chain.Copy()->Dump(), chain.Dump());
}

TEST(SeededChain, AnyBytesAreAChainOrAnError) {
  const std::string& good = Published();
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(SeededChain::FromDump(good.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(SeededChain::FromDump(good + "x").ok());
  EXPECT_EQ(SeededChain::FromDump("\2" + good.substr(1)).status().code(),
            StatusCode::kFailedPrecondition);
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int run = 0; run < 20000; ++run) {
    std::string bent = good;
    for (uint64_t i = 1 + random() % 3; i > 0; --i) {
      bent[random() % bent.size()] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    }
    auto chain = SeededChain::FromDump(bent);
    if (!chain.ok()) continue;
    EXPECT_EQ(chain->Dump(), bent);
    chain->MayContain("x");
    chain->Add("x", 1 << 20);
  }
}

}  // namespace
}  // namespace tamis::redis
