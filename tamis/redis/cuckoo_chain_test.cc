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
#include "tamis/redis/faults.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {
namespace {

using Inserted = CuckooChain::Inserted;

constexpr uint64_t kNoLimit = ~uint64_t{0};
constexpr CuckooChain::Limits kDefault = {};

// Behind the words that all refusals begin with.
bool SaysWhy(const Status& status) {
  return status.message().size() > std::string_view("Cuckoo filter: ").size();
}

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
          if (tables_.size() > 1 && deletes_ * 10 > items_) Compact(false);
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
  // Moves tags of newer tables down and drops the newest ones that are empty.
  void Compact(bool go_on) {
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
      if (!empty && !go_on) break;
    }
    deletes_ = 0;
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
    // Buckets of more than 8 slots are searched in another way.
    const uint64_t bucket_size = 1 + random.Uniform(random.OneIn(4) ? 30 : 6);
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

ByteArray TableOf(std::string_view bytes) {
  if (bytes.empty()) return {};
  ByteArray array = ByteArray::Zeroed(bytes.size());
  std::copy(bytes.begin(), bytes.end(), array.data());
  return array;
}

// The parts of an RDB value, of which so many bytes are there.
CuckooChain::Parts PartsOf(const CuckooChain& chain, uint64_t there = kNoLimit) {
  CuckooChain::Parts parts = {.items = chain.items(),
                              .buckets = chain.buckets(),
                              .deletes = chain.deletes(),
                              .bucket_size = chain.bucket_size(),
                              .max_iterations = chain.max_iterations(),
                              .expansion = chain.expansion(),
                              .tables = {}};
  for (const ByteArray& table : chain.tables()) {
    const uint64_t size = std::min<uint64_t>(there, table.size());
    there -= size;
    parts.tables.push_back(TableOf({reinterpret_cast<const char*>(table.data()), size}));
  }
  return parts;
}

CuckooChain ThreeTables() {
  CuckooChain chain = Make({.capacity = 16, .expansion = 2});
  for (int i = 0; chain.tables().size() < 3; ++i) chain.Insert(std::to_string(i), kDefault);
  return chain;
}

TEST(CuckooChain, PartsGiveTheChainAsFarAsItsBytesAreThere) {
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

TEST(CuckooChain, PartsThatContradictThemselvesAreRefused) {
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

TEST(CuckooChain, SpoiltChainMayContainEverythingAndIsLoadedAndCopiedAsSuch) {
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

TEST(CuckooChain, ChunksAreBounded) {
  const CuckooChain chain = Make({.capacity = 40'000'000, .expansion = 0});
  EXPECT_EQ(chain.Chunk(0).size(), CuckooChain::kGreatestChunk);
  const uint64_t size = chain.tables()[0].size();
  EXPECT_EQ(chain.Chunk(size - 5).size(), 5u);
  EXPECT_TRUE(chain.Chunk(size).empty());
  EXPECT_TRUE(chain.Chunk(~uint64_t{0}).empty());
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

// A random chain of several tables, and copies of the items that must be found in it.
struct Filled {
  CuckooChain chain;
  std::map<std::string, uint64_t> copies;
};

void Change(Random& random, uint64_t eager, Filled* filled) {
  const std::string item = std::to_string(random.Uniform(3000));
  const auto it = filled->copies.find(item);
  if (random.Uniform(10) < eager) {
    if (filled->chain.Insert(item, kDefault) == Inserted::kYes) ++filled->copies[item];
  } else if (it != filled->copies.end()) {
    ASSERT_TRUE(filled->chain.Erase(item));
    if (--it->second == 0) filled->copies.erase(it);
  }
}

// The first item that must be found and is not.
std::string Refused(const Filled& filled) {
  for (const auto& [item, count] : filled.copies) {
    if (!filled.chain.MayContain(item) || filled.chain.Count(item) < count) return item;
  }
  return "";
}

Filled Fill(Random& random) {
  const uint64_t bucket_size = 1 + random.Uniform(6);
  const uint64_t capacity = bucket_size * 2 + random.Uniform(400);
  Filled filled{Make({.capacity = capacity,
                      .bucket_size = static_cast<uint16_t>(bucket_size),
                      .max_iterations = static_cast<uint16_t>(1 + random.Uniform(30)),
                      .expansion = static_cast<uint16_t>(uint64_t{1} << random.Uniform(2))}),
                {}};
  for (int i = 0; i < 4000; ++i) Change(random, 8, &filled);
  return filled;
}

TEST(CuckooChain, CompactionInPiecesEqualsAWholeOne) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 100; ++round) {
    const uint64_t bucket_size = 1 + random.Uniform(6);
    const uint64_t capacity = bucket_size * 2 + random.Uniform(400);
    const uint64_t expansion = uint64_t{1} << random.Uniform(3);
    CuckooChain chain = Make({.capacity = capacity,
                              .bucket_size = static_cast<uint16_t>(bucket_size),
                              .expansion = static_cast<uint16_t>(expansion)});
    Model model(capacity, bucket_size, 20, expansion);
    for (int i = 0; i < 3000; ++i) {
      const std::string item = std::to_string(i);
      ASSERT_EQ(chain.Insert(item, kDefault), model.Insert(item, kDefault.tables));
    }
    Filled holes{std::move(chain), {}};
    const uint64_t kept = random.Uniform(10);
    for (int i = 0; i < 3000; ++i) {
      if (random.Uniform(10) < kept) continue;
      (void)holes.chain.Erase(std::to_string(i));
      (void)model.Erase(std::to_string(i));
    }
    CuckooChain whole = std::move(*holes.chain.Copy());
    ASSERT_TRUE(AllBytes(whole) == model.AllBytes());
    EXPECT_EQ(whole.Compact(0, kNoLimit, true).next, 0u);
    model.Compact(true);
    ASSERT_TRUE(AllBytes(whole) == model.AllBytes());
    ASSERT_EQ(whole.tables().size(), model.tables());
    uint64_t at = 0;
    uint64_t pieces = 0;
    do {
      at = holes.chain.Compact(at, 1 + random.Uniform(3000), true).next;
      ASSERT_LT(++pieces, 100'000u);
    } while (at != 0);
    EXPECT_TRUE(AllBytes(holes.chain) == AllBytes(whole));
    EXPECT_EQ(holes.chain.Header(), whole.Header());
  }
}

// Counted in the bytes before and after: each tag that moved or stayed was looked for a place.
TEST(CuckooChain, PieceOfACompactionIsBounded) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  uint64_t pieces = 0, moved_alone = 0;
  for (int round = 0; round < 50; ++round) {
    Filled filled = Fill(random);
    CuckooChain& chain = filled.chain;
    const uint64_t slots = 1 + random.Uniform(5000);
    for (uint64_t at = 0;;) {
      const std::string before = AllBytes(chain);
      const std::string header = chain.Header();
      const size_t tables = chain.tables().size();
      const auto [next, changed] = chain.Compact(at, slots, true);
      const std::string after = AllBytes(chain);
      EXPECT_EQ(changed, header != chain.Header() || before != after);
      ++pieces;
      // The tags that the piece passed, by the table that they lay in.
      uint64_t work = 0;
      uint64_t begin = before.size();
      for (size_t i = tables; i-- > 1;) {
        const uint64_t size = chain.Buckets(i) * chain.bucket_size();
        begin -= size;
        if (at != 0 && at < before.size() && at < begin) continue;  // newer than the piece
        const uint64_t first = at > begin && at < begin + size ? at - begin : 0;
        const bool stopped_here = next >= begin && next < begin + size;
        for (uint64_t j = first; j < (stopped_here ? next - begin : size); ++j) {
          if (before[begin + j] == 0) continue;
          const bool moved = begin + j >= after.size() || after[begin + j] == 0;
          work += 1 + kLookSlots * (moved ? 1 : 2 * i);
        }
        if (stopped_here) break;
      }
      // The last tag is not left half done.
      EXPECT_LE(work, slots + 1 + kLookSlots * 2 * tables);
      if (next == 0) break;
      ASSERT_NE(next, at);
      if (at != 0 && at < before.size() && next > at) {
        EXPECT_LE(next - at, slots);
      }
      at = next;
    }
    EXPECT_EQ(chain.deletes(), 0u);
    EXPECT_EQ(Refused(filled), "");
    // Tags that come into the newest table move into free places of older ones, and none is
    // dropped.
    for (int i = 0; i < 20; ++i) Change(random, 10, &filled);
    const std::string before = AllBytes(chain);
    const std::string header = chain.Header();
    const bool changed = chain.Compact(0, kNoLimit, true).changed;
    EXPECT_EQ(changed, header != chain.Header() || before != AllBytes(chain));
    moved_alone += changed && before.size() == AllBytes(chain).size();
  }
  EXPECT_GT(pieces, 1000u);
  EXPECT_GT(moved_alone, 0u);
}

// Compacts in pieces with other changes in between, and returns the first item that is refused. A
// replica has the same bytes throughout, and is copied from the start, or restarts, at any time.
std::string CompactAmongChanges(uint64_t seed, uint64_t* pieces) {
  Random random(seed);
  Filled filled = Fill(random);
  CuckooChain replica = Load(filled.chain);
  const uint64_t eager = 3 + random.Uniform(5);
  uint64_t begun = 0;
  for (int i = 0; i < 300; ++i) {
    for (uint64_t n = random.Uniform(5); n-- > 0;) {
      const std::string item = std::to_string(random.Uniform(3000));
      const auto it = filled.copies.find(item);
      if (random.Uniform(10) < eager) {
        const Inserted done = filled.chain.Insert(item, kDefault);
        if (done == Inserted::kYes) {
          ++filled.copies[item];
          EXPECT_EQ(replica.Insert(item, {.tables = kNoLimit}), done);
        }
      } else if (it != filled.copies.end()) {
        EXPECT_TRUE(filled.chain.Erase(item) && replica.Erase(item));
        if (--it->second == 0) filled.copies.erase(it);
      }
    }
    if (random.OneIn(20)) replica = Load(filled.chain);
    if (random.OneIn(50)) filled.chain = Load(filled.chain);  // it forgets how far it was
    const uint64_t at = filled.chain.next_piece();
    if (at == 0) ++begun;
    (void)filled.chain.Compact(at, 3000, true);
    (void)replica.Compact(at, 3000, true);
    ++*pieces;
    EXPECT_TRUE(AllBytes(replica) == AllBytes(filled.chain));
    EXPECT_EQ(replica.Header(), filled.chain.Header());
    if (std::string refused = Refused(filled); !refused.empty()) return refused;
  }
  EXPECT_GT(begun, 0u);
  while (filled.chain.Compact(filled.chain.next_piece(), 3000, true).next != 0) {
  }
  return Refused(filled);
}

TEST(CuckooChain, PiecesAmongChangesRefuseNothingAndReplicasAreEqual) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  uint64_t pieces = 0;
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(CompactAmongChanges(seed + i, &pieces), "");
  EXPECT_EQ(pieces, 10u * 300);
}

TEST(CuckooChain, ItemIsRefusedWhenATableIsDroppedThatWasFoundEmptyBefore) {
  CuckooChain chain = Make({.capacity = 1 << 10});
  for (int i = 0; i < 3000; ++i)
    ASSERT_EQ(chain.Insert(std::to_string(i), kDefault), Inserted::kYes);
  ASSERT_GT(chain.tables().size(), 2u);
  const auto one_that_is_refused = [&]() -> bool {
    CuckooChain copy = std::move(*chain.Copy());
    uint64_t at = 0;
    do {
      at = copy.Compact(at, 1000, true).next;
    } while (at != 0);
    for (int i = 0; i < 3000; ++i) {
      if (!copy.MayContain(std::to_string(i))) return true;
    }
    return false;
  };
  EXPECT_FALSE(one_that_is_refused());
  faults.drops_what_was_passed = true;
  EXPECT_TRUE(one_that_is_refused());
  faults.drops_what_was_passed = false;
}

TEST(CuckooChain, TagsOfLoadedTablesAreCounted) {
  const std::string full(1024, '\7');
  CuckooChain::Parts parts = {
      .buckets = 512, .bucket_size = 2, .max_iterations = 20, .expansion = 1, .tables = {}};
  parts.tables.push_back(TableOf(full));
  parts.tables.push_back(TableOf(full));
  auto saved = CuckooChain::FromParts(std::move(parts), 0);
  ASSERT_TRUE(saved.ok()) << saved.status();
  CuckooChain in_chunks = Load(*saved);
  for (CuckooChain* chain : {&*saved, &in_chunks}) {
    const auto dropped = [&] {
      return chain->Compact(0, kNoLimit, true).changed && chain->tables().size() == 1;
    };
    EXPECT_FALSE(dropped());
    // Chunks are also taken again.
    EXPECT_TRUE(chain->LoadChunk(0, std::string(1024, '\0')));
    EXPECT_TRUE(chain->LoadChunk(1024, std::string(1000, '\0')));
    EXPECT_TRUE(chain->LoadChunk(2047, "\7"));
    EXPECT_TRUE(dropped());
    EXPECT_EQ(std::ranges::count(AllBytes(*chain), '\7'), 24);
  }
}

TEST(CuckooChain, EmptyTablesAreDroppedWithoutPassingThem) {
  CuckooChain chain = Make({.capacity = 1 << 22});
  std::vector<std::string> items;
  for (int i = 0; chain.tables().size() < 2; ++i) {
    items.push_back(std::to_string(i));
    ASSERT_EQ(chain.Insert(items.back(), kDefault), Inserted::kYes);
  }
  ASSERT_TRUE(chain.Erase(items.back()));  // newest tables first
  items.pop_back();
  std::vector<ByteArray> dropped;
  dropped.reserve(2);
  const CompactedPiece piece = chain.Compact(0, 0, true, &dropped);
  EXPECT_EQ(piece.next, 0u);
  EXPECT_TRUE(piece.changed);
  EXPECT_EQ(dropped.size(), 1u);
  EXPECT_EQ(chain.tables().size(), 1u);
  for (const std::string& item : items) ASSERT_TRUE(chain.MayContain(item));
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
    EXPECT_FALSE(partial->Compact(0, 100, true).changed);
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

}  // namespace
}  // namespace tamis::redis
