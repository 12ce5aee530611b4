#include "tamis/redis/bloom_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {
namespace {

using Added = BloomChain::Added;
using Loaded = BloomChain::Loaded;

constexpr uint64_t kNoLimit = ~uint64_t{0};

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
  Model(double rate, uint64_t capacity, uint32_t growth, bool scaling)
      : growth_(growth), scaling_(scaling) {
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

  static std::vector<uint64_t> Bits(const Link& link, const std::string& item) {
    const uint64_t a = MurmurHash64A(item, 0xc6a4a7935bd1e995u);
    const uint64_t b = MurmurHash64A(item, a);
    std::vector<uint64_t> bits;
    for (uint64_t i = 0; i < link.hashes; ++i) bits.push_back((a + i * b) % link.bits.size());
    return bits;
  }

  uint32_t growth_;
  bool scaling_;
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

TEST(BloomChain, GreatestOfEverythingIsAnErrorAndNoCrash) {
  EXPECT_EQ(BloomChain::FirstLinkBytes(
                {.error_rate = 1e-300, .capacity = uint64_t{1} << 62, .scaling = false}),
            0u);
  EXPECT_EQ(
      BloomChain::Create({.error_rate = 1e-300, .capacity = uint64_t{1} << 62}).status().code(),
      StatusCode::kResourceExhausted);
}

TEST(BloomChain, MergedContainsWhatBothDid) {
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
    for (int i = 0; i < mine; ++i) EXPECT_TRUE(chain.MayContain("mine" + std::to_string(i)));
    for (int i = 0; i < theirs; ++i) EXPECT_TRUE(chain.MayContain("theirs" + std::to_string(i)));
    EXPECT_EQ(AllBytes(Load(chain)), AllBytes(chain)) << "what it saves it loads";
    EXPECT_EQ(chain.Add("later", kNoLimit), Added::kNew);
    EXPECT_TRUE(chain.MayContain("later"));
  }
}

TEST(BloomChain, MergesOnlyWhatIsAlikeAndWhole) {
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
    return BloomChain::FromHeader(bad, 1 << 20).ok();
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
