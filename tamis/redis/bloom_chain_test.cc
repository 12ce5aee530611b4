#include "tamis/redis/bloom_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/base/zeroed_memory.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {
namespace {

using Added = BloomChain::Added;
using Loaded = BloomChain::Loaded;

constexpr uint64_t kNoLimit = ~uint64_t{0};

// Behind the words that all refusals begin with.
bool SaysWhy(const Status& status) {
  return status.message().size() > std::string_view("Bloom filter: ").size();
}

BloomChain Make(BloomChain::Options options) { return std::move(*BloomChain::Create(options)); }

std::string AllBytes(const BloomChain& chain) {
  std::string all;
  for (;;) {
    const std::string_view chunk = chain.Chunk(all.size());
    if (chunk.empty()) return all;
    all += chunk;
  }
}

BloomChain Load(const BloomChain& chain) {
  auto copy = BloomChain::FromHeader(chain.Header(), kNoLimit);
  EXPECT_TRUE(copy.ok()) << copy.status();
  uint64_t at = 0;
  while (at < AllBytes(chain).size()) {
    const std::string_view chunk = chain.Chunk(at);
    EXPECT_EQ(copy->LoadChunk(at, chunk), Loaded::kOk);
    at += chunk.size();
  }
  return std::move(*copy);
}

// The arithmetic once more, a bit at a time.
class Model {
 public:
  Model(double rate, uint64_t capacity, uint32_t growth, bool scaling, bool hash64 = true)
      : growth_(growth), scaling_(scaling), hash64_(hash64) {
    AddLink(scaling ? rate * 0.5 : rate, capacity);
  }

  Added Add(const std::string& item) {
    if (MayContain(item)) return Added::kPerhaps;
    if (links_.back().size == links_.back().entries) {
      if (!scaling_) return Added::kFull;
      AddLink(links_.back().rate * 0.5, links_.back().entries * growth_);
    }
    Link& link = links_.back();
    ++link.size;
    for (const uint64_t bit : Bits(link, item)) link.bits[bit] = true;
    return Added::kNew;
  }

  bool MayContain(const std::string& item) const {
    for (const Link& link : links_) {
      bool all = true;
      for (const uint64_t bit : Bits(link, item)) all = all && link.bits[bit];
      if (all) return true;
    }
    return false;
  }

  std::string AllBytes() const {
    std::string all;
    for (const Link& link : links_) {
      std::string bytes(link.bits.size() / 8, '\0');
      for (size_t i = 0; i < link.bits.size(); ++i) {
        if (link.bits[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | (1 << (i % 8)));
      }
      all += bytes;
    }
    return all;
  }

 private:
  struct Link {
    double rate;
    uint64_t entries;
    uint32_t hashes;
    uint64_t size;
    std::vector<bool> bits;
  };

  void AddLink(double rate, uint64_t entries) {
    const double bits_per_entry = -std::log(rate) / 0.480453013918201;
    auto bits = static_cast<uint64_t>(static_cast<double>(entries) * bits_per_entry);
    if (bits == 0) bits = 1;
    while (bits % 64 != 0) ++bits;
    links_.push_back({rate, entries,
                      static_cast<uint32_t>(std::ceil(0.693147180559945 * bits_per_entry)), 0,
                      std::vector<bool>(bits)});
  }

  std::vector<uint64_t> Bits(const Link& link, const std::string& item) const {
    const uint64_t a =
        hash64_ ? MurmurHash64A(item, 0xc6a4a7935bd1e995u) : MurmurHash2(item, 0x9747b28cu);
    const uint64_t b =
        hash64_ ? MurmurHash64A(item, a) : MurmurHash2(item, static_cast<uint32_t>(a));
    std::vector<uint64_t> bits;
    for (uint64_t i = 0; i < link.hashes; ++i) bits.push_back((a + i * b) % link.bits.size());
    return bits;
  }

  uint32_t growth_;
  bool scaling_;
  bool hash64_;
  std::vector<Link> links_;
};

TEST(MurmurHash, IsThatOfAnotherImplementation) {
  // Computed with a program of another language.
  EXPECT_EQ(MurmurHash64A("", 0), 0u);
  EXPECT_EQ(MurmurHash64A("item1", 0) % 255 + 1, 7u);  // a published dump of a cuckoo filter
}

TEST(MurmurHash, OlderOneIsThatOfAnotherImplementation) {
  EXPECT_EQ(MurmurHash2("", 0), 0u);
  EXPECT_EQ(MurmurHash2("a", 0x9747b28c), 0xa2d0b27cu);
  EXPECT_EQ(MurmurHash2("item1", 0x9747b28c), 0xfb5a68e6u);
  EXPECT_EQ(MurmurHash2("abcdefg", 1), 0xafa6525u);
}

TEST(BloomChain, PublishedDumpHasTheseBytes) {
  BloomChain chain = Make({.error_rate = 0.1, .capacity = 10});
  EXPECT_EQ(chain.Add("item1", kNoLimit), Added::kNew);
  EXPECT_EQ(AllBytes(chain), std::string("\x01\x08\x00\x80\x00\x04\x20\x00", 8));
}

TEST(BloomChain, DefaultFilterHasThePublishedSize) {
  EXPECT_EQ(Make({}).SizeBytes(), 240u);
  EXPECT_EQ(Make({}).Capacity(), 100u);
}

TEST(BloomChain, HeaderHasTheseBytes) {
  BloomChain chain = Make({.error_rate = 0.1, .capacity = 10, .growth = 3});
  chain.Add("item1", kNoLimit);
  std::string expected("\x01\0\0\0\0\0\0\0\x01\0\0\0\x05\0\0\0\x03\0\0\0", 20);
  expected += std::string("\x08\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0", 24);
  const double rate = 0.05;
  const double bits_per_entry = -std::log(rate) / 0.480453013918201;
  expected.append(reinterpret_cast<const char*>(&rate), 8);
  expected.append(reinterpret_cast<const char*>(&bits_per_entry), 8);
  expected += std::string("\x05\0\0\0\x0a\0\0\0\0\0\0\0\0", 13);
  EXPECT_EQ(chain.Header(), expected);
}

TEST(BloomChain, RandomAddsAreThoseOfTheModel) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    const double rate = std::pow(10, -0.7 - 5 * random.UniformDouble());
    const uint64_t capacity = 1 + random.Uniform(300);
    const auto growth = static_cast<uint32_t>(1 + random.Uniform(4));
    const bool scaling = !random.OneIn(3);
    BloomChain chain =
        Make({.error_rate = rate, .capacity = capacity, .growth = growth, .scaling = scaling});
    Model model(rate, capacity, growth, scaling);
    std::vector<std::string> items;
    std::unordered_set<std::string> added;
    for (int i = 0; i < 2000; ++i) {
      const std::string item = std::to_string(random.Uniform(3000));
      const Added result = chain.Add(item, kNoLimit);
      ASSERT_EQ(result, model.Add(item)) << item;
      if (result != Added::kFull) added.insert(item);
      items.push_back(item);
      if (random.OneIn(500)) chain = Load(chain);
      if (random.OneIn(500)) chain = std::move(*chain.Copy());
    }
    ASSERT_EQ(AllBytes(chain), model.AllBytes());
    for (int i = 0; i < 1000; ++i) items.push_back("absent" + std::to_string(i));
    const std::vector<std::string_view> views(items.begin(), items.end());
    const auto answers = std::make_unique<bool[]>(views.size());
    chain.MayContain(views, answers.get());
    for (size_t i = 0; i < items.size(); ++i) {
      ASSERT_EQ(answers[i], model.MayContain(items[i]));
      ASSERT_EQ(answers[i], chain.MayContain(items[i]));
      ASSERT_TRUE(answers[i] || !added.contains(items[i]));
    }
  }
}

// A filter of an older server: the same but for its hash.
TEST(BloomChain, RandomAddsToAFilterOf32BitHashesAreThoseOfTheModel) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    const uint64_t capacity = 10 + random.Uniform(100);
    std::string header = Make({.capacity = capacity}).Header();
    header[12] = static_cast<char>(BloomChain::kNoRounding);
    auto chain = BloomChain::FromHeader(header, kNoLimit);
    ASSERT_TRUE(chain.ok()) << chain.status();
    EXPECT_FALSE(chain->hash64());
    const std::string zeros(chain->Chunk(0).size(), '\0');
    ASSERT_EQ(chain->LoadChunk(0, zeros), Loaded::kOk);
    Model model(0.01, capacity, 2, true, /*hash64=*/false);
    std::vector<std::string> items;
    for (int i = 0; i < 500; ++i) {
      items.push_back(std::to_string(random.Uniform(600)));
      ASSERT_EQ(chain->Add(items.back(), kNoLimit), model.Add(items.back()));
    }
    ASSERT_EQ(AllBytes(*chain), model.AllBytes());
    const std::vector<std::string_view> views(items.begin(), items.end());
    const auto answers = std::make_unique<bool[]>(views.size());
    chain->MayContain(views, answers.get());
    for (size_t i = 0; i < items.size(); ++i) {
      ASSERT_TRUE(answers[i] && chain->MayContain(items[i]));
    }
  }
}

TEST(BloomChain, BatchesAreAddedAsOneByOne) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const BloomChain::Options options = {.error_rate = random.OneIn(2) ? 0.05 : 1e-7,
                                         .capacity = 1 + random.Uniform(60),
                                         .growth = static_cast<uint32_t>(random.Uniform(4)),
                                         .scaling = !random.OneIn(3)};
    BloomChain chain = Make(options), one_by_one = Make(options);
    const uint64_t greatest = random.OneIn(2) ? kNoLimit : 200 + random.Uniform(2000);
    for (int batch = 0; batch < 20; ++batch) {
      std::vector<std::string> items;
      for (uint64_t n = random.Uniform(70); n > 0; --n) {
        items.push_back(std::to_string(random.Uniform(500)));
      }
      const std::vector<std::string_view> views(items.begin(), items.end());
      std::vector<Added> answers(items.size(), Added::kPartial);
      const size_t done = chain.Add(views, greatest, answers.data());
      for (size_t i = 0; i < done; ++i) {
        ASSERT_EQ(answers[i], one_by_one.Add(items[i], greatest));
        const bool goes_on = answers[i] == Added::kNew || answers[i] == Added::kPerhaps;
        ASSERT_TRUE(goes_on || i + 1 == done);
      }
      ASSERT_TRUE(done == items.size() ||
                  (answers[done - 1] != Added::kNew && answers[done - 1] != Added::kPerhaps));
      ASSERT_EQ(chain.Header(), one_by_one.Header());
      ASSERT_EQ(AllBytes(chain), AllBytes(one_by_one));
    }
    uint64_t capacity = 0, items = 0, bytes = 0;
    for (const BloomChain::Link& link : chain.links()) {
      EXPECT_LE(link.size, link.entries);
      capacity += link.entries;
      items += link.size;
      bytes += link.bytes.size();
    }
    EXPECT_EQ(chain.Capacity(), capacity);
    EXPECT_EQ(chain.size(), items);
    EXPECT_EQ(chain.SizeBytes(), 32 + 64 * chain.links().size() + bytes);
    EXPECT_EQ(BloomChain::FirstLinkBytes(options), chain.links()[0].bytes.size());
    chain.Spoil();
    Added answer = Added::kNew;
    EXPECT_EQ(chain.Add(std::vector<std::string_view>{"x", "y"}, kNoLimit, &answer), 1u);
    EXPECT_EQ(answer, Added::kPartial);
  }
}

// The parts of an RDB value.
BloomChain::Parts PartsOf(const BloomChain& chain, uint64_t bytes_there = kNoLimit) {
  BloomChain copy = std::move(*chain.Copy());
  BloomChain::Parts parts = {
      .size = chain.size(), .options = chain.options(), .growth = chain.growth(), .links = {}};
  for (BloomChain::Link& link : copy.mutable_links()) {
    const uint64_t there = std::min<uint64_t>(bytes_there, link.bytes.size());
    bytes_there -= there;
    BloomChain::Link& part = parts.links.emplace_back(std::move(link));
    part.reciprocal = 0;
    if (there == part.bytes.size()) continue;
    ByteArray cut = there == 0 ? ByteArray() : ByteArray::Zeroed(there);
    std::copy_n(part.bytes.data(), there, cut.data());
    part.bytes = std::move(cut);
  }
  return parts;
}

BloomChain ThreeLinks() {
  BloomChain chain = Make({.capacity = 10});
  for (int i = 0; i < 60; ++i) chain.Add(std::to_string(i), kNoLimit);
  EXPECT_EQ(chain.links().size(), 3u);
  return chain;
}

TEST(BloomChain, PartsGiveTheChainAsFarAsItsBytesAreThere) {
  const BloomChain chain = ThreeLinks();
  const std::string all = AllBytes(chain);
  for (uint64_t there = 0; there <= all.size(); ++there) {
    auto made = BloomChain::FromParts(PartsOf(chain, there), kNoLimit);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->Header(), chain.Header());
    EXPECT_EQ(made->present(), there);
    EXPECT_EQ(made->partial(), there < all.size());
    std::string expected = all.substr(0, there);
    expected.resize(all.size());
    ASSERT_EQ(AllBytes(*made), expected);
    for (int i = 0; i < 60; ++i) ASSERT_TRUE(made->MayContain(std::to_string(i)));
    if (!made->partial()) continue;
    EXPECT_FALSE(BloomChain::FromParts(PartsOf(chain, there), 10).ok()) << "larger than allowed";
    while (made->partial()) {
      const uint64_t at = made->present();
      ASSERT_EQ(made->LoadChunk(at, chain.Chunk(at)), Loaded::kOk);
    }
    ASSERT_EQ(AllBytes(*made), all);
  }
  EXPECT_TRUE(BloomChain::FromParts(PartsOf(chain), 0).ok()) << "what is there is not bounded";
}

TEST(BloomChain, PartsThatContradictThemselvesAreRefused) {
  const BloomChain chain = ThreeLinks();
  const auto refused = [&](auto change) {
    BloomChain::Parts parts = PartsOf(chain);
    change(parts);
    const Status status = BloomChain::FromParts(std::move(parts), kNoLimit).status();
    EXPECT_TRUE(status.ok() || SaysWhy(status)) << status;
    return status.code() == StatusCode::kDataLoss;
  };
  using Parts = BloomChain::Parts;
  EXPECT_FALSE(refused([](Parts&) {}));
  EXPECT_TRUE(refused([](Parts& parts) { parts.links.clear(); }));
  EXPECT_TRUE(refused([](Parts& parts) { ++parts.size; }));
  EXPECT_TRUE(refused([](Parts& parts) { --parts.size; }));
  EXPECT_TRUE(refused([](Parts& parts) { ++parts.links[1].size; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.links[1].size = ~uint64_t{0}; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.growth = uint64_t{1} << 32; }));
  EXPECT_FALSE(refused([](Parts& parts) { parts.growth = (uint64_t{1} << 32) - 1; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.growth = 0; }));
  EXPECT_FALSE(refused([](Parts& parts) {
    parts.growth = 0;
    parts.options |= BloomChain::kNotScaling;
  }));
  EXPECT_FALSE(refused([](Parts& parts) { parts.options |= BloomChain::kEntriesAreBits; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.options |= 16; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.links[1].bytes = ByteArray::Zeroed(1); }))
      << "a later link is there, an earlier one is not";
  EXPECT_TRUE(refused([](Parts& parts) {
    parts.links[2].bytes = ByteArray::Zeroed(parts.links[2].bytes.size() + 1);
  }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.links[0].hashes += 1; }));
  EXPECT_TRUE(refused([](Parts& parts) { parts.links[0].entries = uint64_t{1} << 62; }));
  EXPECT_FALSE(refused([](Parts& parts) { parts.links[0].entries = (uint64_t{1} << 62) - 1; }));
}

TEST(BloomChain, SizesOfLinksWhoseSumOverflowsAreRefused) {
  BloomChain::Parts parts = PartsOf(ThreeLinks());
  parts.links[0].size = parts.size + 1;
  parts.links[1].size = ~uint64_t{0};
  parts.links[2].size = 0;
  EXPECT_EQ(BloomChain::FromParts(std::move(parts), kNoLimit).status().code(),
            StatusCode::kDataLoss);
}

// Others may have put more into a link than it was made for.
TEST(BloomChain, OverfullLinkIsFull) {
  BloomChain::Parts parts = PartsOf(ThreeLinks());
  const uint64_t more = parts.links[2].entries + 1 - parts.links[2].size;
  parts.links[2].size += more;
  parts.size += more;
  auto chain = BloomChain::FromParts(std::move(parts), kNoLimit);
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (int i = 0; chain->Add("new" + std::to_string(i), kNoLimit) != BloomChain::Added::kNew; ++i) {
    ASSERT_LT(i, 1000);
  }
  EXPECT_EQ(chain->links().size(), 4u);
}

TEST(BloomChain, MaxCapacityIsThatOfTheChainWhenNoFurtherLinkFits) {
  for (const uint32_t growth : {0u, 1u, 2u, 4u}) {
    SCOPED_TRACE("growth " + std::to_string(growth));
    constexpr uint64_t kGreatestBytes = 3000;
    BloomChain chain = Make({.error_rate = 0.01, .capacity = 50, .growth = growth});
    const uint64_t most = chain.MaxCapacity(kGreatestBytes);
    BloomChain::Added added = BloomChain::Added::kNew;
    for (int i = 0; added != BloomChain::Added::kTooLarge && added != BloomChain::Added::kFull;
         ++i) {
      added = chain.Add(std::to_string(i), kGreatestBytes);
      ASSERT_EQ(chain.MaxCapacity(kGreatestBytes), most);
    }
    EXPECT_EQ(chain.Capacity(), most);
    EXPECT_EQ(chain.links().size() > 1, growth > 0);
  }
}

// Filters of others may be rounded to a power of two.
TEST(BloomChain, LinkOf2ToTheN2BitsIsTakenAndAnotherIsRefused) {
  for (const uint8_t n2 : {uint8_t{0}, uint8_t{5}, uint8_t{6}, uint8_t{7}, uint8_t{63}}) {
    BloomChain::Parts parts = PartsOf(Make({.error_rate = 0.02, .capacity = 8}));
    ASSERT_EQ(parts.links[0].bits, 128u);
    parts.links[0].n2 = n2;
    auto made = BloomChain::FromParts(std::move(parts), kNoLimit);
    EXPECT_EQ(made.ok(), n2 == 0 || n2 == 7) << int{n2};
    if (!made.ok()) continue;
    EXPECT_EQ(made->links()[0].n2, n2);
    EXPECT_EQ(made->Copy()->Header(), made->Header());
    EXPECT_EQ(Load(*made).Header(), made->Header());
  }
}

TEST(BloomChain, LinkOfBitsThatFillNoByteKeepsItsItems) {
  BloomChain::Parts parts = PartsOf(Make({.error_rate = 0.02, .capacity = 8}));
  parts.links[0].bits = 121;
  auto chain = BloomChain::FromParts(std::move(parts), kNoLimit);
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (int i = 0; i < 8; ++i) chain->Add(std::to_string(i), kNoLimit);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(chain->MayContain(std::to_string(i)));
  EXPECT_EQ(AllBytes(*chain).back() & ~1, 0) << "beyond bit 120";
}

TEST(BloomChain, BitsOfOldLinksFollowFromTheirEntries) {
  EXPECT_EQ(BloomChain::BitsFor(100, 9.6), 960u);
  EXPECT_EQ(BloomChain::BitsFor(1, 1), 1u);
  EXPECT_EQ(BloomChain::BitsFor(1, 0.99), 0u);
  EXPECT_EQ(BloomChain::BitsFor(uint64_t{1} << 61, 1), uint64_t{1} << 61);
  EXPECT_EQ(BloomChain::BitsFor(uint64_t{1} << 62, 1), 0u);
  EXPECT_EQ(BloomChain::BitsFor(1, std::numeric_limits<double>::quiet_NaN()), 0u);
}

TEST(BloomChain, SpoiltChainMayContainEverythingUntilItsEndIsLoadedAgain) {
  BloomChain chain = ThreeLinks();
  const std::string all = AllBytes(chain);
  chain.Spoil();
  EXPECT_TRUE(chain.partial());
  EXPECT_EQ(chain.present(), all.size() - 1);
  EXPECT_TRUE(chain.MayContain("absent"));
  EXPECT_TRUE(chain.Copy()->partial());
  EXPECT_EQ(chain.Merge(ThreeLinks()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ThreeLinks().Merge(chain).code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(chain.LoadChunk(all.size() - 1, all.substr(all.size() - 1)), Loaded::kOk);
  EXPECT_FALSE(chain.MayContain("absent"));
}

// Fails one allocation of zeroed memory, which is that of bytes.
class FailingZeroedMemory {
 public:
  explicit FailingZeroedMemory(int which) : before_(TheZeroedMemory()) {
    real_ = &before_;
    countdown_ = which;
    SetZeroedMemory({.allocate = [](size_t size) -> void* {
                       return --countdown_ == 0 ? nullptr : real_->allocate(size);
                     },
                     .free = before_.free,
                     .huge_pages = before_.huge_pages});
  }
  ~FailingZeroedMemory() { SetZeroedMemory(before_); }

 private:
  inline static const ZeroedMemory* real_ = nullptr;
  inline static int countdown_ = 0;
  const ZeroedMemory before_;
};

TEST(BloomChain, WithoutMemoryForALinkTheChainStaysAsItIs) {
  const auto without = [](int which, auto&& call) {
    const FailingZeroedMemory failing(which);
    return call();
  };
  EXPECT_EQ(without(1, [] { return BloomChain::Create({}).status().code(); }),
            StatusCode::kResourceExhausted);
  BloomChain chain = Make({.capacity = 5});
  for (int i = 0; chain.size() < 5; ++i) chain.Add(std::to_string(i), kNoLimit);
  const std::string before = chain.Header() + AllBytes(chain);
  EXPECT_EQ(without(1, [&] { return chain.Add("one more", kNoLimit); }), Added::kNoMemory);
  EXPECT_EQ(chain.Header() + AllBytes(chain), before);
  EXPECT_FALSE(chain.MayContain("one more"));
  EXPECT_EQ(chain.Add("one more", kNoLimit), Added::kNew);
  EXPECT_FALSE(without(2, [&] { return chain.Copy().has_value(); }));
  EXPECT_EQ(
      without(2, [&] { return BloomChain::FromHeader(chain.Header(), kNoLimit).status(); }).code(),
      StatusCode::kResourceExhausted);
  BloomChain small = Make({.capacity = 5});
  const std::string small_before = small.Header() + AllBytes(small);
  EXPECT_EQ(without(1, [&] { return small.Merge(chain); }).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(small.Header() + AllBytes(small), small_before);
}

TEST(BloomChain, ChunksAreBounded) {
  const BloomChain chain = Make({.capacity = 20'000'000, .scaling = false});
  const uint64_t size = chain.links()[0].bytes.size();
  ASSERT_GT(size, BloomChain::kGreatestChunk);
  EXPECT_EQ(chain.Chunk(0).size(), BloomChain::kGreatestChunk);
  EXPECT_EQ(chain.Chunk(BloomChain::kGreatestChunk).size(), size - BloomChain::kGreatestChunk);
  EXPECT_EQ(chain.Chunk(size - 1).size(), 1u);
}

TEST(BloomChain, BatchOfManyHashesAnswersAsOneByOne) {
  // More probes than are fetched ahead.
  BloomChain chain = Make({.error_rate = 1e-9, .capacity = 500});
  for (int i = 0; i < 1200; ++i) chain.Add(std::to_string(i), kNoLimit);
  std::vector<std::string> items;
  for (int i = 0; i < 2400; ++i) items.push_back(std::to_string(i));
  const std::vector<std::string_view> views(items.begin(), items.end());
  const auto answers = std::make_unique<bool[]>(views.size());
  chain.MayContain(views, answers.get());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(answers[i], chain.MayContain(items[i]));
    EXPECT_EQ(answers[i], i < 1200) << i;
  }
}

TEST(BloomChain, FillsBeyond32BitsOfPositions) {
  // 2^33 bits and more; filters of others had 2^32 of them in use.
  BloomChain chain = Make({.error_rate = 0.0002, .capacity = 500'000'000, .scaling = false});
  ASSERT_GT(chain.links()[0].bits, uint64_t{1} << 33);
  uint64_t high = 0;
  for (int i = 0; i < 1000; ++i) chain.Add(std::to_string(i), kNoLimit);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t a = MurmurHash64A(std::to_string(i), 0xc6a4a7935bd1e995u);
    high += a % chain.links()[0].bits >= uint64_t{1} << 32;
    EXPECT_TRUE(chain.MayContain(std::to_string(i)));
    EXPECT_FALSE(chain.MayContain("absent" + std::to_string(i)));
  }
  EXPECT_GT(high, 400u);
}

TEST(BloomChain, RefusesLinksBeyondTheLimitAndStaysAsItIs) {
  BloomChain chain = Make({.error_rate = 0.01, .capacity = 10});
  Added added = Added::kNew;
  int items = 0;
  while (added != Added::kTooLarge) {
    added = chain.Add(std::to_string(items), 1000);
    ++items;
    ASSERT_LT(items, 10000);
  }
  EXPECT_LE(chain.SizeBytes(), 1000u);
  EXPECT_GT(chain.links().size(), 1u);
  const std::string header = chain.Header();
  EXPECT_EQ(chain.Add("one more", 1000), Added::kTooLarge);
  EXPECT_EQ(chain.Header(), header);
  EXPECT_EQ(chain.Add("one more", kNoLimit), Added::kNew);
}

TEST(BloomChain, LinkIsMadeIfTheChainIsNotLargerThanAllowedAfterwards) {
  BloomChain chain = Make({.error_rate = 0.01, .capacity = 10});
  for (int i = 0; chain.links().size() < 6; ++i) {
    const std::string item = std::to_string(i);
    BloomChain grown = std::move(*chain.Copy());
    if (grown.Add(item, kNoLimit) == Added::kNew && grown.links().size() > chain.links().size()) {
      EXPECT_EQ(chain.Add(item, grown.SizeBytes() - 1), Added::kTooLarge);
    }
    (void)chain.Add(item, grown.SizeBytes());
    ASSERT_EQ(chain.Header(), grown.Header());
  }
}

TEST(BloomChain, ManyLinksOfTheLeastRateKeepEveryItem) {
  // The rate halves with each link and must not become 0.
  BloomChain chain = Make({.error_rate = 1e-300, .capacity = 1, .growth = 1});
  int items = 0;
  while (chain.links().size() < 100) {
    chain.Add(std::to_string(items++), kNoLimit);
    ASSERT_LT(items, 10000);
  }
  EXPECT_EQ(chain.links().back().error_rate, std::numeric_limits<double>::min());
  for (int i = 0; i < items; ++i) EXPECT_TRUE(chain.MayContain(std::to_string(i)));
  EXPECT_EQ(Load(chain).Header(), chain.Header());
}

TEST(BloomChain, LargestFieldsAreAnErrorAndNoCrash) {
  EXPECT_EQ(BloomChain::FirstLinkBytes(
                {.error_rate = 1e-300, .capacity = uint64_t{1} << 62, .scaling = false}),
            0u);
  EXPECT_EQ(
      BloomChain::Create({.error_rate = 1e-300, .capacity = uint64_t{1} << 62}).status().code(),
      StatusCode::kResourceExhausted);
}

TEST(BloomChain, MergedChainContainsTheItemsOfBoth) {
  for (const auto& [mine, theirs] : {std::pair{5, 5}, {5, 200}, {200, 5}, {200, 300}}) {
    BloomChain chain = Make({.error_rate = 0.01, .capacity = 10});
    BloomChain other = Make({.error_rate = 0.01, .capacity = 10});
    for (int i = 0; i < mine; ++i) chain.Add("mine" + std::to_string(i), kNoLimit);
    for (int i = 0; i < theirs; ++i) other.Add("theirs" + std::to_string(i), kNoLimit);
    const uint64_t size = chain.size() + other.size();
    const std::string before = AllBytes(other);
    ASSERT_TRUE(chain.Merge(other).ok());
    EXPECT_EQ(AllBytes(other), before);
    EXPECT_EQ(chain.size(), size);
    uint64_t of_links = 0;
    for (const BloomChain::Link& link : chain.links()) of_links += link.size;
    EXPECT_EQ(of_links, size);
    EXPECT_EQ(chain.present(), AllBytes(chain).size());
    EXPECT_FALSE(chain.partial());
    for (int i = 0; i < mine; ++i) EXPECT_TRUE(chain.MayContain("mine" + std::to_string(i)));
    for (int i = 0; i < theirs; ++i) EXPECT_TRUE(chain.MayContain("theirs" + std::to_string(i)));
    EXPECT_EQ(AllBytes(Load(chain)), AllBytes(chain)) << "what it saves it loads";
    EXPECT_EQ(chain.Add("later", kNoLimit), Added::kNew);
    EXPECT_TRUE(chain.MayContain("later"));
  }
}

TEST(BloomChain, MergeNeedsEqualAndWholeChains) {
  BloomChain chain = Make({.error_rate = 0.01, .capacity = 100});
  chain.Add("mine", kNoLimit);
  const std::string before = AllBytes(chain);
  for (const BloomChain::Options& options :
       {BloomChain::Options{.error_rate = 0.01, .capacity = 200},
        {.error_rate = 0.001, .capacity = 100},
        {.error_rate = 0.01, .capacity = 100, .growth = 4},
        {.error_rate = 0.01, .capacity = 100, .scaling = false}}) {
    EXPECT_EQ(chain.Merge(Make(options)).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(chain.Merge(*BloomChain::FromHeader(chain.Header(), kNoLimit)).ok());
  EXPECT_EQ(AllBytes(chain), before);
}

TEST(BloomChain, PartialChainMayContainEverythingAndTakesNothing) {
  BloomChain whole = Make({.capacity = 10});
  for (int i = 0; i < 50; ++i) whole.Add(std::to_string(i), kNoLimit);
  auto partial = BloomChain::FromHeader(whole.Header(), kNoLimit);
  ASSERT_TRUE(partial.ok());
  const std::vector<std::string_view> items = {"absent", "1"};
  bool answers[2] = {false, false};
  uint64_t at = 0;
  const uint64_t size = AllBytes(whole).size();
  while (at < size) {
    EXPECT_TRUE(partial->partial());
    EXPECT_TRUE(partial->MayContain("absent"));
    partial->MayContain(items, answers);
    EXPECT_TRUE(answers[0] && answers[1]);
    EXPECT_EQ(partial->Add("x", kNoLimit), Added::kPartial);
    EXPECT_EQ(partial->LoadChunk(at + 1, whole.Chunk(at + 1)), Loaded::kOutOfOrder);
    const std::string_view chunk = whole.Chunk(at).substr(0, 7);
    EXPECT_EQ(partial->LoadChunk(at, chunk), Loaded::kOk);
    EXPECT_EQ(partial->LoadChunk(at, chunk), Loaded::kOk);  // again, since the answer was lost
    at += chunk.size();
  }
  EXPECT_FALSE(partial->partial());
  EXPECT_EQ(AllBytes(*partial), AllBytes(whole));
  EXPECT_FALSE(partial->MayContain("absent"));
}

TEST(BloomChain, ChunkAtAnyPositionIsAnAnswer) {
  BloomChain chain = Make({.capacity = 10});
  for (int i = 0; i < 50; ++i) chain.Add(std::to_string(i), kNoLimit);
  const uint64_t size = AllBytes(chain).size();
  for (const uint64_t at : {size, size + 1, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_TRUE(chain.Chunk(at).empty());
    EXPECT_EQ(chain.LoadChunk(at, "x"), Loaded::kNoLink);
    EXPECT_EQ(chain.LoadChunk(at, ""), Loaded::kNoLink);
  }
  EXPECT_EQ(chain.LoadChunk(0, std::string(chain.links()[0].bytes.size() + 1, 'x')),
            Loaded::kTooLong);
}

TEST(BloomChain, HeaderIsRefusedWhenAnyFieldIsOutOfRange) {
  BloomChain chain = Make({.capacity = 10});
  for (int i = 0; i < 15; ++i) chain.Add(std::to_string(i), kNoLimit);
  const std::string good = chain.Header();
  ASSERT_TRUE(BloomChain::FromHeader(good, kNoLimit).ok());
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(BloomChain::FromHeader(good.substr(0, cut), kNoLimit).ok());
  }
  EXPECT_FALSE(BloomChain::FromHeader(good + "x", kNoLimit).ok());
  const auto with = [&](size_t at, auto value) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &value, sizeof(value));
    const auto chain = BloomChain::FromHeader(bad, 1 << 20);
    EXPECT_TRUE(chain.ok() || SaysWhy(chain.status())) << chain.status();
    return chain.ok();
  };
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{1} << 32, uint64_t{1} << 61,
        uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{7}, ~uint64_t{63}}) {
    EXPECT_FALSE(with(0, value)) << "size " << value;
    EXPECT_FALSE(with(20, value)) << "bytes " << value;
    EXPECT_FALSE(with(28, value)) << "bits " << value;
    EXPECT_FALSE(with(36, value)) << "link size " << value;
    if (value < 2 || value > uint64_t{1} << 61) {
      EXPECT_EQ(with(64, value), value == 1) << "entries " << value;
    }
  }
  for (const uint32_t value : {0u, 1u, 3u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    EXPECT_FALSE(with(8, value)) << "links " << value;
    EXPECT_FALSE(with(60, value)) << "hashes " << value;
  }
  EXPECT_FALSE(with(16, uint32_t{0}));
  EXPECT_TRUE(with(16, uint32_t{40000})) << "a growth that other servers take";
  EXPECT_TRUE(with(12, uint32_t{1})) << "the hash of 32 bits";
  EXPECT_FALSE(with(12, uint32_t{0x80000005}));
  using Doubles = std::numeric_limits<double>;
  for (const double value : {0.0, -0.0, -1.0, 1.0, 2.0, Doubles::infinity(), -Doubles::infinity(),
                             Doubles::quiet_NaN()}) {
    EXPECT_FALSE(with(44, value)) << "rate " << value;
    EXPECT_FALSE(with(52, value)) << "bits per entry " << value;
  }
  EXPECT_FALSE(with(52, 1e300));
  EXPECT_FALSE(with(72, uint8_t{1}));
  EXPECT_FALSE(with(72, uint8_t{255}));
}

TEST(BloomChain, PartialChainBeyondTheLimitIsRefusedBeforeItIsAllocated) {
  BloomChain chain = Make({.capacity = 1'000'000});
  EXPECT_FALSE(BloomChain::FromHeader(chain.Header(), 1000).ok());
  EXPECT_TRUE(BloomChain::FromHeader(chain.Header(), 10'000'000).ok());
}

}  // namespace
}  // namespace tamis::redis
