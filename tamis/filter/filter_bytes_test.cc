#include "tamis/filter/filter_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/split_counting_bloom_filter.h"

namespace tamis {
namespace {

using testing::HasSubstr;

TEST(FilterBytesTest, TheHeaderIsLaidOutAsDocumented) {
  const std::vector<uint64_t> payload = {0x1111111111111111, 0x2222222222222222};
  const std::string bytes = SealFilter(
      {.kind = FilterKind::kBloom, .seed = 0x0807060504030201, .parameters = {9, 8}}, payload);
  ASSERT_EQ(bytes.size(), 128u + 16u);
  EXPECT_EQ(bytes.substr(0, 8), "tamisflt");
  EXPECT_EQ(bytes.substr(8, 8), std::string("\1\0\0\0\1\0\0\0", 8));
  EXPECT_EQ(bytes.substr(16, 8), "\1\2\3\4\5\6\7\10");
  EXPECT_EQ(bytes[24], 16);
  EXPECT_EQ(bytes[32], 9);
  EXPECT_EQ(bytes[40], 8);
  EXPECT_EQ(bytes.substr(128), std::string(8, '\x11') + std::string(8, '\x22'));
  EXPECT_TRUE(VerifyFilterBytes(bytes).ok());
  EXPECT_EQ(ReadFilterHeader(bytes)->kind, FilterKind::kBloom);
}

TEST(FilterBytesTest, MessagesSayWhatTheBytesAre) {
  const auto split = *SplitCountingBloomFilter::Create({.capacity = 10});
  EXPECT_THAT(BloomFilter::Deserialize(split.Serialize()).status().message(),
              HasSubstr("the bytes are those of a split counting Bloom filter"));
  EXPECT_THAT(BloomFilter::Deserialize("PNG").status().message(),
              HasSubstr("do not begin as a tamis filter does"));
  std::string truncated = BloomFilter::Create({.capacity = 1000})->Serialize();
  truncated.resize(truncated.size() - 8);
  EXPECT_THAT(BloomFilter::Deserialize(truncated).status().message(),
              HasSubstr("bytes of payload, there are"));
}

TEST(FilterBytesTest, BorrowingChecksTheHeaderAndVerifyThePayload) {
  std::string bytes = BloomFilter::Create({.capacity = 1000})->Serialize();
  bytes.back() ^= 1;
  EXPECT_TRUE(BloomFilter::Deserialize(bytes, OpenMode::kBorrow).ok());
  EXPECT_EQ(VerifyFilterBytes(bytes).code(), StatusCode::kDataLoss);
  bytes[16] ^= 1;
  EXPECT_EQ(BloomFilter::Deserialize(bytes, OpenMode::kBorrow).status().code(),
            StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis
