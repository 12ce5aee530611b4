#include "tamis/filter/scalable_bloom_filter.h"

#include <bit>
#include <cstring>

#include <gtest/gtest.h>

#include <cmath>

#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

uint64_t Hits(const ScalableBloomFilter& filter, uint64_t stream, uint64_t keys) {
  uint64_t hits = 0;
  for (uint64_t i = 0; i < keys; ++i) hits += filter.MayContain(Key(stream, i));
  return hits;
}

TEST(ScalableBloomFilterTest, KeepsItsRateAtFiftyTimesItsCapacity) {
  constexpr uint64_t kCapacity = 2000;
  constexpr uint64_t kAsked = 1 << 18;
  for (const double fpr : {0.01, 0.001}) {
    auto filter = *ScalableBloomFilter::Create({.capacity = kCapacity, .fpr = fpr});
    for (uint64_t i = 0; i < 50 * kCapacity; ++i) filter.Insert(Key(1, i));
    EXPECT_EQ(filter.layers(), 6u);
    EXPECT_EQ(Hits(filter, 1, 50 * kCapacity), 50 * kCapacity);
    const double most = fpr * kAsked + 5 * std::sqrt(fpr * kAsked);
    EXPECT_LE(static_cast<double>(Hits(filter, 2, kAsked)), most);
    // The control: one layer of that capacity does not keep it.
    auto single = *BlockedBloomFilter::Create({.capacity = kCapacity, .fpr = fpr});
    for (uint64_t i = 0; i < 50 * kCapacity; ++i) single.Insert(Key(1, i));
    uint64_t hits = 0;
    for (uint64_t i = 0; i < kAsked; ++i) hits += single.MayContain(Key(2, i));
    EXPECT_GT(static_cast<double>(hits), most);
  }
}

TEST(ScalableBloomFilterTest, RepeatedKeysFillNothing) {
  auto filter = *ScalableBloomFilter::Create({.capacity = 100});
  for (int round = 0; round < 100; ++round) {
    for (uint64_t i = 0; i < 90; ++i) filter.Insert(Key(3, i));
  }
  EXPECT_EQ(filter.layers(), 1u);
  EXPECT_EQ(filter.Count(), 9000u);
}

TEST(ScalableBloomFilterTest, AMergedOneGoesOnWithTheLargerOpenLayer) {
  auto small = *ScalableBloomFilter::Create({.capacity = 100});
  auto large = small;
  for (uint64_t i = 0; i < 50; ++i) small.Insert(Key(4, i));
  for (uint64_t i = 0; i < 1000; ++i) large.Insert(Key(5, i));
  for (const bool into_large : {false, true}) {
    ScalableBloomFilter merged = into_large ? large : small;
    ASSERT_TRUE(merged.Merge(into_large ? small : large).ok());
    const size_t layers = merged.layers();
    EXPECT_EQ(layers, small.layers() + large.layers());
    for (uint64_t i = 0; i < 400; ++i) merged.Insert(Key(6, i));
    EXPECT_EQ(merged.layers(), layers);
    EXPECT_EQ(Hits(merged, 4, 50) + Hits(merged, 5, 1000) + Hits(merged, 6, 400), 1450u);
  }
  ASSERT_TRUE(large.Merge(large).ok());
  EXPECT_EQ(Hits(large, 5, 1000), 1000u);
}

TEST(ScalableBloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *ScalableBloomFilter::Create({.capacity = 10, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 40; ++i) filter.Insert(Mix(i));
  ASSERT_EQ(filter.layers(), 3u);
  EXPECT_EQ(Hash(filter.Serialize(), 0), 7121327094678595628u) << "bytes changed";
}

// A few bytes that promise a layer of two thousand million keys.
TEST(ScalableBloomFilterTest, AnOpenLayerSmallerThanItsCapacityIsDamage) {
  const std::string layer =
      BlockedBloomFilter::Create({.capacity = 1, .fpr = 0.005, .seed = 1})->Serialize();
  std::vector<uint64_t> payload(1 + layer.size() / sizeof(uint64_t), layer.size());
  std::memcpy(payload.data() + 1, layer.data(), layer.size());
  const auto sealed = [&](uint64_t capacity, uint64_t doublings) {
    return SealFilter({.kind = ScalableBloomFilter::kKind,
                       .seed = 1,
                       .parameters = {capacity, std::bit_cast<uint64_t>(0.01), 1, doublings, 0}},
                      payload);
  };
  for (const OpenMode mode : {OpenMode::kCopy, OpenMode::kBorrow}) {
    EXPECT_TRUE(ScalableBloomFilter::Deserialize(sealed(1, 0), mode).ok());
    EXPECT_EQ(ScalableBloomFilter::Deserialize(sealed(FilterOptions::kMaxCapacity, 0), mode)
                  .status()
                  .code(),
              StatusCode::kDataLoss);
    EXPECT_EQ(ScalableBloomFilter::Deserialize(sealed(1, 40), mode).status().code(),
              StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace tamis
