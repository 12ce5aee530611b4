// A CuckooChain made of parts that come from outside: RDB values, headers and chunks.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "tamis/redis/cuckoo_chain.h"
#include "tamis/redis/testing/cuckoo_chains.h"

namespace tamis::redis {
namespace {

TEST(CuckooChainParts, PartsGiveTheChainAsFarAsItsBytesAreThere) {
  const CuckooChain chain = ThreeTables();
  const std::string all = AllBytes(chain);
  for (uint64_t there = 0; there <= all.size(); ++there) {
    auto made = CuckooChain::FromParts(PartsOf(chain, there), kNoLimit);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->Header(), chain.Header());
    EXPECT_EQ(made->present(), there);
    EXPECT_EQ(made->partial(), there < all.size());
    std::string expected = all.substr(0, there);
    expected.resize(all.size());
    ASSERT_EQ(AllBytes(*made), expected);
    if (!made->partial()) continue;
    EXPECT_FALSE(CuckooChain::FromParts(PartsOf(chain, there), 10).ok()) << "larger than allowed";
    while (made->partial()) {
      const uint64_t at = made->present();
      ASSERT_TRUE(made->LoadChunk(at, chain.Chunk(at)));
    }
    ASSERT_EQ(AllBytes(*made), all);
    CuckooChain whole = std::move(*chain.Copy());
    (void)made->Compact(0, kNoLimit, true);
    (void)whole.Compact(0, kNoLimit, true);
    ASSERT_EQ(AllBytes(*made), AllBytes(whole));
  }
  EXPECT_TRUE(CuckooChain::FromParts(PartsOf(chain), 0).ok()) << "what is there is not bounded";
}

TEST(CuckooChainParts, PartsThatContradictThemselvesAreRefused) {
  const CuckooChain chain = ThreeTables();
  using Parts = CuckooChain::Parts;
  const auto refused = [&](auto change) {
    Parts parts = PartsOf(chain);
    change(parts);
    const Status status = CuckooChain::FromParts(std::move(parts), kNoLimit).status();
    EXPECT_TRUE(status.ok() || SaysWhy(status)) << status;
    return status.code() == StatusCode::kDataLoss;
  };
  EXPECT_FALSE(refused([](Parts&) {}));
  EXPECT_TRUE(refused([](Parts& parts) { parts.tables.clear(); }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.tables.resize(CuckooChain::kGreatestTables + 1); }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.buckets = 0; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.buckets = 3; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.buckets = 4; })) << "fewer than the bytes";
  EXPECT_TRUE(refused([](Parts& parts) { parts.bucket_size = 0; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.bucket_size = 1; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.bucket_size = 256; }));
  EXPECT_FALSE(refused([](Parts& parts) { parts.max_iterations = 65535; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.max_iterations = 65536; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.max_iterations = 0; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.expansion = 0; })) << "it does not grow";
  EXPECT_TRUE(refused([](Parts& parts) { parts.expansion = 3; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.expansion = 65536; }));
  EXPECT_FALSE(refused([&](Parts& parts) { parts.items = AllBytes(chain).size(); }));
  EXPECT_TRUE(refused([&](Parts& parts) { parts.items = AllBytes(chain).size() + 1; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.tables[1] = TableOf("x"); }))
      << "a later table is there, an earlier one is not";
  const auto alone = [](uint64_t buckets, uint64_t bucket_size, uint64_t expansion,
                        uint64_t tables) {
    Parts parts = {.buckets = buckets, .bucket_size = bucket_size, .max_iterations = 1};
    parts.expansion = expansion;
    parts.tables.resize(tables);
    return CuckooChain::FromParts(std::move(parts), 1 << 20).ok();
  };
  EXPECT_TRUE(alone(1, 255, 0, 1));
  EXPECT_TRUE(alone(1, 1, 32768, 2));
  EXPECT_FALSE(alone(1, 1, 32768, 5)) << "2^60 bytes";
  EXPECT_FALSE(alone(uint64_t{1} << 61, 255, 1, 1)) << "more than 2^64 bytes";
  Parts parts = {.buckets = 1, .bucket_size = 1, .max_iterations = 1, .expansion = 32768};
  parts.tables.resize(6);  // the last one of 2^75 bytes
  EXPECT_EQ(CuckooChain::FromParts(std::move(parts), kNoLimit).status().code(),
            StatusCode::kDataLoss);
}

TEST(CuckooChainParts, HeaderIsRefusedWhenAnyFieldIsOutOfRange) {
  CuckooChain chain = Make({.capacity = 8});
  for (int i = 0; i < 20; ++i) chain.Insert(std::to_string(i), kDefault);
  const std::string good = chain.Header();
  ASSERT_TRUE(CuckooChain::FromHeader(good, kNoLimit).ok());
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(CuckooChain::FromHeader(good.substr(0, cut), kNoLimit).ok());
  }
  EXPECT_FALSE(CuckooChain::FromHeader(good + "x", kNoLimit).ok());
  const auto with = [&](size_t at, auto value) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &value, sizeof(value));
    const auto chain = CuckooChain::FromHeader(bad, 1 << 20);
    EXPECT_TRUE(chain.ok() || SaysWhy(chain.status())) << chain.status();
    return chain.ok();
  };
  for (const uint64_t value : {uint64_t{0}, uint64_t{3}, uint64_t{1} << 31, uint64_t{1} << 61,
                               uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_FALSE(with(8, value)) << "buckets " << value;
  }
  for (const uint64_t value : {uint64_t{0}, uint64_t{65537}, uint64_t{1} << 31, ~uint64_t{0}}) {
    EXPECT_FALSE(with(24, value)) << "tables " << value;
  }
  EXPECT_FALSE(with(0, ~uint64_t{0})) << "items";
  EXPECT_FALSE(with(32, uint16_t{0}));
  EXPECT_FALSE(with(32, uint16_t{256}));
  EXPECT_FALSE(with(34, uint16_t{0}));
  EXPECT_FALSE(with(36, uint16_t{3}));
  EXPECT_FALSE(with(36, uint16_t{65535}));
  EXPECT_FALSE(with(36, uint16_t{0})) << "several tables that do not grow";
}

TEST(CuckooChainParts, SpoiltChainMayContainEverythingAndIsLoadedAndCopiedAsSuch) {
  CuckooChain chain = ThreeTables();
  const std::string all = AllBytes(chain);
  chain.Spoil();
  EXPECT_TRUE(chain.partial());
  EXPECT_EQ(chain.present(), all.size() - 1);
  EXPECT_TRUE(chain.MayContain("absent"));
  bool answer = false;
  chain.MayContain(std::vector<std::string_view>{"absent"}, &answer);
  EXPECT_TRUE(answer);
  EXPECT_TRUE(chain.Copy()->partial());
  ASSERT_TRUE(chain.LoadChunk(all.size() - 1, all.substr(all.size() - 1)));
  EXPECT_FALSE(chain.partial());
  EXPECT_FALSE(chain.MayContain("absent"));
}

TEST(CuckooChainParts, ChunksAreBounded) {
  const CuckooChain chain = Make({.capacity = 40'000'000, .expansion = 0});
  EXPECT_EQ(chain.Chunk(0).size(), CuckooChain::kGreatestChunk);
  const uint64_t size = chain.tables()[0].size();
  EXPECT_EQ(chain.Chunk(size - 5).size(), 5u);
  EXPECT_TRUE(chain.Chunk(size).empty());
  EXPECT_TRUE(chain.Chunk(~uint64_t{0}).empty());
}

TEST(CuckooChainParts, PartialChainMayContainEverythingAndNeitherTakesNorGives) {
  CuckooChain whole = Make({.capacity = 8});
  for (int i = 0; i < 50; ++i) whole.Insert(std::to_string(i), kDefault);
  auto partial = CuckooChain::FromHeader(whole.Header(), kNoLimit);
  ASSERT_TRUE(partial.ok());
  const std::string all = AllBytes(whole);
  for (uint64_t at = 0; at < all.size(); ++at) {
    EXPECT_TRUE(partial->MayContain("absent"));
    EXPECT_EQ(partial->Insert("x", kDefault), Inserted::kPartial);
    EXPECT_EQ(partial->InsertNew("x", kDefault), Inserted::kPartial);
    EXPECT_FALSE(partial->Erase("1"));
    EXPECT_FALSE(partial->Compact(0, 100, true).changed);
    EXPECT_FALSE(partial->LoadChunk(at + 1, "x"));
    EXPECT_TRUE(partial->LoadChunk(at, all.substr(at, 1)));
  }
  EXPECT_EQ(AllBytes(*partial), all);
  EXPECT_FALSE(partial->MayContain("absent"));
}

}  // namespace
}  // namespace tamis::redis
