#include "tamis/filter/blocked_bloom_filter.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/filter/fpr.h"
#include "tamis/filter/testing/targets.h"

namespace tamis {
namespace {

TEST(SplitBlockTest, EveryTargetSetsAndTestsTheBitsOfTheScalarMasks) {
  Random random(1);
  ForEachTarget([&] {
    for (const uint32_t lanes : {8u, 16u}) {
      const SplitBlocks blocks(lanes, 7);
      std::vector<uint32_t> scalar(blocks.words() * 2);
      std::vector<uint64_t> vector(blocks.words());
      std::vector<uint64_t> bulk(blocks.words());
      std::vector<uint64_t> hashes;
      for (int i = 0; i < 50; ++i) {
        hashes.push_back(random());
        for (uint32_t l = 0; l < lanes; ++l) {
          scalar[blocks.Block(hashes.back()) * lanes + l] |= blocks.LaneMask(hashes.back(), l);
        }
        blocks.Set(vector.data(), hashes.back());
      }
      blocks.Set(bulk.data(), hashes);
      ASSERT_EQ(std::memcmp(scalar.data(), vector.data(), scalar.size() * 4), 0);
      ASSERT_EQ(bulk, vector);
      for (int i = 0; i < 2000; ++i) hashes.push_back(random());
      const Bitmap answers = blocks.Test(vector.data(), hashes);
      for (size_t i = 0; i < hashes.size(); ++i) {
        bool all = true;
        for (uint32_t l = 0; l < lanes; ++l) {
          all &= (scalar[blocks.Block(hashes[i]) * lanes + l] & blocks.LaneMask(hashes[i], l)) != 0;
        }
        ASSERT_EQ(blocks.Test(vector.data(), hashes[i]), all);
        ASSERT_EQ(TestBit(answers, i), all);
      }
    }
  });
}

TEST(BlockedBloomFilterTest, SixteenLanesAreTakenWhereTheyNeedFewerBits) {
  EXPECT_EQ(BlockedBloomFilter::Create({.capacity = 1000, .fpr = 0.001})->lanes(), 8u);
  EXPECT_EQ(BlockedBloomFilter::Create({.capacity = 1000, .fpr = 0.0001})->lanes(), 16u);
  EXPECT_NEAR(fpr::SplitBlockBits(0.01, 8), 10.53, 0.01);
}

TEST(BlockedBloomFilterTest, TheStoredBytesAreThoseOfVersion1) {
  auto filter = *BlockedBloomFilter::Create({.capacity = 60, .fpr = 0.01, .seed = 0x5eed});
  for (uint64_t i = 0; i < 60; ++i) filter.Insert(Mix(i));
  EXPECT_EQ(Hash(filter.Serialize(), 0), 13553185662164479664u) << "bytes changed";
}

}  // namespace
}  // namespace tamis
