// Effects and limits of a seed.
#include <gtest/gtest.h>

#include <string>

#include "tamis/base/hash.h"
#include "tamis/filter/blocked_bloom_filter.h"
#include "tamis/filter/cuckoo_filter.h"

namespace tamis {
namespace {

constexpr uint64_t kKeys = 2000;

std::string Key(const char* kind, uint64_t i) { return std::string(kind) + std::to_string(i); }

template <class F>
F FilterWithSeed(uint64_t seed) {
  F filter = *F::Create({.capacity = kKeys, .fpr = 0.01, .seed = seed});
  for (uint64_t i = 0; i < kKeys; ++i) (void)filter.Insert(Hash(Key("held", i), seed));
  return filter;
}

// An attacker who knows the seed can try keys at home until a thousand of them are false positives.
// All of them get through a filter of that seed, and one in a hundred through a filter of another.
TEST(FilterSeedTest, KeysChosenAgainstOneSeedDoNothingUnderAnother) {
  const auto known = FilterWithSeed<BlockedBloomFilter>(1);
  const auto other = FilterWithSeed<BlockedBloomFilter>(2);
  uint64_t through_other = 0;
  uint64_t chosen = 0;
  for (uint64_t i = 0; chosen < 1000; ++i) {
    const std::string key = Key("chosen", i);
    if (!known.MayContain(Hash(key, 1))) continue;
    ++chosen;
    through_other += other.MayContain(Hash(key, 2));
  }
  // 10 expected; five sigmas.
  EXPECT_LE(through_other, 26u);
}

// A cuckoo filter's two buckets hold eight tags: nine keys that share them fill it for each other.
TEST(FilterSeedTest, KeysThatShareBucketsUnderOneSeedFitUnderAnother) {
  constexpr uint64_t kCapacity = 20;
  const auto accepted = [](const std::vector<std::string>& keys, uint64_t seed) {
    auto filter = *CuckooFilter::Create({.capacity = kCapacity, .seed = seed, .tag_bits = 4});
    uint64_t count = 0;
    for (const std::string& key : keys) count += filter.Insert(Hash(key, seed));
    return count;
  };
  // Equal high and low bits are equal buckets and tags.
  std::vector<std::string> keys;
  const uint64_t wanted = Hash("victim", 1);
  const auto place = [](uint64_t hash) {
    return std::pair(FastRange(hash, 12), static_cast<uint32_t>(hash) >> 28);
  };
  for (uint64_t i = 0; keys.size() < 16; ++i) {
    const std::string key = Key("chosen", i);
    if (place(Hash(key, 1)) == place(wanted)) keys.push_back(key);
  }
  EXPECT_LT(accepted(keys, 1), 13u);
  EXPECT_EQ(accepted(keys, 2), keys.size());
}

}  // namespace
}  // namespace tamis
