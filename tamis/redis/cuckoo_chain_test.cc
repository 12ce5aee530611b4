#include "tamis/redis/cuckoo_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {
namespace {

using Inserted = CuckooChain::Inserted;

constexpr uint64_t kNoLimit = ~uint64_t{0};
constexpr CuckooChain::Limits kDefault = {};

CuckooChain Make(CuckooChain::Options options) { return std::move(*CuckooChain::Create(options)); }

std::string AllBytes(const CuckooChain& chain) {
  std::string all;
  for (;;) {
    const std::string_view chunk = chain.Chunk(all.size());
    if (chunk.empty()) return all;
    all += chunk;
  }
}

CuckooChain Load(const CuckooChain& chain) {
  auto copy = CuckooChain::FromHeader(chain.Header(), kNoLimit);
  EXPECT_TRUE(copy.ok()) << copy.status();
  for (uint64_t at = 0; !chain.Chunk(at).empty(); at += chain.Chunk(at).size()) {
    EXPECT_TRUE(copy->LoadChunk(at, chain.Chunk(at)));
  }
  return std::move(*copy);
}

uint64_t Other(uint64_t hash, uint8_t tag) { return hash ^ (tag * uint64_t{0x5bd1e995}); }

// Places are tried in the documented order, in vectors of vectors.
class Model {
 public:
  Model(uint64_t capacity, uint64_t bucket_size, uint64_t iterations, uint64_t expansion)
      : bucket_size_(bucket_size), iterations_(iterations), expansion_(expansion) {
    uint64_t buckets = 1;
    while (buckets < capacity / bucket_size) buckets *= 2;
    tables_.push_back(Table(buckets, Bucket(bucket_size)));
  }

  Inserted Insert(const std::string& item, uint64_t limit) {
    const uint64_t hash = MurmurHash64A(item, 0);
    const auto tag = static_cast<uint8_t>(hash % 255 + 1);
    if (!Place(hash, tag) && !Kick(hash, tag)) {
      if (expansion_ == 0) return Inserted::kFull;
      if (tables_.size() == limit) return Inserted::kTooManyTables;
      tables_.push_back(Table(tables_.back().size() * expansion_, Bucket(bucket_size_)));
      Place(hash, tag);
    }
    ++items_;
    return Inserted::kYes;
  }

  bool Erase(const std::string& item) {
    const uint64_t hash = MurmurHash64A(item, 0);
    const auto tag = static_cast<uint8_t>(hash % 255 + 1);
    for (size_t i = tables_.size(); i-- > 0;) {
      for (const uint64_t h : {hash, Other(hash, tag)}) {
        for (uint8_t& slot : tables_[i][h % tables_[i].size()]) {
          if (slot != tag) continue;
          slot = 0;
          --items_;
          ++deletes_;
          if (tables_.size() > 1 && deletes_ * 10 > items_) Compact();
          return true;
        }
      }
    }
    return false;
  }

  uint64_t Count(const std::string& item) const {
    const uint64_t hash = MurmurHash64A(item, 0);
    const auto tag = static_cast<uint8_t>(hash % 255 + 1);
    uint64_t count = 0;
    for (const Table& table : tables_) {
      const uint64_t first = hash % table.size();
      const uint64_t second = Other(hash, tag) % table.size();
      count += std::count(table[first].begin(), table[first].end(), tag);
      if (first != second) count += std::count(table[second].begin(), table[second].end(), tag);
    }
    return count;
  }

  std::string AllBytes() const {
    std::string all;
    for (const Table& table : tables_) {
      for (const Bucket& bucket : table) all.append(bucket.begin(), bucket.end());
    }
    return all;
  }
  size_t tables() const { return tables_.size(); }
  uint64_t items() const { return items_; }
  uint64_t deletes() const { return deletes_; }

 private:
  using Bucket = std::vector<uint8_t>;
  using Table = std::vector<Bucket>;

  bool TakeFree(Bucket& bucket, uint8_t tag) {
    const auto slot = std::find(bucket.begin(), bucket.end(), 0);
    if (slot == bucket.end()) return false;
    *slot = tag;
    return true;
  }

  bool Place(uint64_t hash, uint8_t tag) {
    for (size_t i = tables_.size(); i-- > 0;) {
      for (const uint64_t h : {hash, Other(hash, tag)}) {
        if (TakeFree(tables_[i][h % tables_[i].size()], tag)) return true;
      }
    }
    return false;
  }

  bool Kick(uint64_t hash, uint8_t tag) {
    const Table before = tables_.back();
    Table& table = tables_.back();
    uint64_t bucket = hash % table.size();
    uint64_t slot = 0;
    for (uint64_t i = 0; i < iterations_; ++i) {
      std::swap(table[bucket][slot], tag);
      bucket = Other(bucket, tag) % table.size();
      if (TakeFree(table[bucket], tag)) return true;
      slot = (slot + 1) % bucket_size_;
    }
    table = before;
    return false;
  }

  void Compact() {
    for (size_t i = tables_.size(); i-- > 1;) {
      bool empty = true;
      for (uint64_t b = 0; b < tables_[i].size(); ++b) {
        for (uint8_t& slot : tables_[i][b]) {
          if (slot == 0) continue;
          bool moved = false;
          for (size_t j = 0; j < i && !moved; ++j) {
            for (const uint64_t h : {b, Other(b, slot)}) {
              if (TakeFree(tables_[j][h % tables_[j].size()], slot)) {
                moved = true;
                break;
              }
            }
          }
          if (moved) slot = 0;
          empty = empty && moved;
        }
      }
      if (empty && i + 1 == tables_.size()) tables_.pop_back();
      if (!empty) break;
    }
    deletes_ = 0;
  }

  uint64_t bucket_size_;
  uint64_t iterations_;
  uint64_t expansion_;
  uint64_t items_ = 0;
  uint64_t deletes_ = 0;
  std::vector<Table> tables_;
};

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
    const uint64_t bucket_size = 1 + random.Uniform(6);
    const uint64_t capacity = bucket_size * 2 + random.Uniform(200);
    const uint64_t iterations = 1 + random.Uniform(30);
    const uint64_t expansion = random.OneIn(4) ? 0 : uint64_t{1} << random.Uniform(3);
    CuckooChain chain = Make({.capacity = capacity,
                              .bucket_size = static_cast<uint16_t>(bucket_size),
                              .max_iterations = static_cast<uint16_t>(iterations),
                              .expansion = static_cast<uint16_t>(expansion)});
    Model model(capacity, bucket_size, iterations, expansion);
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

TEST(CuckooChain, CompactionIsBoundedAndKeepsEverything) {
  CuckooChain chain = Make({.capacity = 1 << 20});
  std::vector<std::string> kept;
  for (int i = 0; i < 2'500'000; ++i) {
    ASSERT_EQ(chain.Insert(std::to_string(i), kDefault), Inserted::kYes);
  }
  ASSERT_GT(chain.tables().size(), 2u);
  for (int i = 0; i < 2'500'000; ++i) {
    if (i % 5 == 0) {
      kept.push_back(std::to_string(i));
    } else {
      ASSERT_TRUE(chain.Erase(std::to_string(i)));
    }
  }
  const size_t tables = chain.tables().size();
  int steps = 1;
  while (!chain.Compact(10'000, true)) ASSERT_LT(++steps, 1000);
  EXPECT_GT(steps, 5);
  EXPECT_LT(chain.tables().size(), tables);
  EXPECT_EQ(chain.deletes(), 0u);
  for (const std::string& item : kept) ASSERT_TRUE(chain.MayContain(item));
}

TEST(CuckooChain, PartialChainMayContainEverythingAndNeitherTakesNorGives) {
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
    EXPECT_FALSE(partial->Compact(100, true));
    EXPECT_FALSE(partial->LoadChunk(at + 1, "x"));
    EXPECT_TRUE(partial->LoadChunk(at, all.substr(at, 1)));
  }
  EXPECT_EQ(AllBytes(*partial), all);
  EXPECT_FALSE(partial->MayContain("absent"));
}

TEST(CuckooChain, HeaderIsRefusedWhenAnyFieldIsOutOfRange) {
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
    return CuckooChain::FromHeader(bad, 1 << 20).ok();
  };
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{3}, uint64_t{1} << 31, uint64_t{1} << 61, uint64_t{1} << 62,
        uint64_t{1} << 63, ~uint64_t{0}}) {
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

}  // namespace
}  // namespace tamis::redis
