#include "tamis/redis/trusted_filter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tamis/base/hash.h"

namespace tamis::redis {
namespace {

constexpr uint64_t kNoLimit = ~uint64_t{0};

TrustedFilter Make(bool guard) {
  auto filter = AnyFilter::Create("cuckoo", {.capacity = 1000, .fpr = 0.01, .seed = 7});
  EXPECT_TRUE(filter.ok()) << filter.status();
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 500; ++i) hashes.push_back(Mix(i));
  EXPECT_EQ(filter->Insert(hashes), hashes.size());
  TrustedFilter::Card card;
  card.guard = guard;
  card.wanted_rate = 0.01;
  card.capacity = 1000;
  card.mark = "0/16B3748";
  return TrustedFilter(std::move(card), std::move(*filter));
}

TEST(TrustedFilter, HeaderHasTheseBytes) {
  EXPECT_EQ(Make(true).Header(300, false),
            std::string("TMSF\x01\0\0\0\0\0\0\0\x7b\x14\xae\x47\xe1\x7a\x84\x3f"
                        "\xe8\x03\0\0\0\0\0\0\x2c\x01\0\0\0\0\0\0\x09"
                        "0/16B3748",
                        46));
}

TEST(TrustedFilter, ComesInChunksOfAnySizeAndIsPartialUntilTheLast) {
  const TrustedFilter filter = Make(true);
  const std::string bytes = filter.Serialized();
  for (const size_t size : {size_t{1}, size_t{100}, bytes.size()}) {
    auto copy = TrustedFilter::FromHeader(filter.Header(bytes.size(), false), kNoLimit);
    ASSERT_TRUE(copy.ok()) << copy.status();
    for (size_t at = 0; at < bytes.size(); at += size) {
      EXPECT_TRUE(copy->partial());
      EXPECT_EQ(copy->received(), at);
      EXPECT_EQ(copy->Serialized(), bytes.substr(0, at));
      ASSERT_TRUE(copy->AppendChunk(std::string_view(bytes).substr(at, size)).ok());
    }
    ASSERT_FALSE(copy->partial());
    EXPECT_EQ(copy->Serialized(), bytes);
    EXPECT_EQ(copy->Header(bytes.size(), false), filter.Header(bytes.size(), false));
    EXPECT_FALSE(copy->TrustedAt(1)) << "what was loaded is not trusted";
    EXPECT_FALSE(copy->AppendChunk("x").ok());
  }
}

TEST(TrustedFilter, ChunksThatAreNoFilterLeaveItPartial) {
  const TrustedFilter filter = Make(false);
  std::string bytes = filter.Serialized();
  bytes.back() ^= 1;
  auto copy = TrustedFilter::FromHeader(filter.Header(bytes.size(), false), kNoLimit);
  ASSERT_TRUE(copy.ok());
  ASSERT_TRUE(copy->AppendChunk(std::string_view(bytes).substr(0, 100)).ok());
  EXPECT_EQ(copy->AppendChunk(bytes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(copy->AppendChunk(std::string_view(bytes).substr(100)).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(copy->partial());
  EXPECT_EQ(copy->received(), 100u);
}

TEST(TrustedFilter, HeaderIsRefusedWhenItIsDamagedOrPromisesTooMuch) {
  const std::string good = Make(true).Header(300, false);
  ASSERT_TRUE(TrustedFilter::FromHeader(good, 300).ok());
  EXPECT_FALSE(TrustedFilter::FromHeader(good, 299).ok());
  EXPECT_FALSE(TrustedFilter::FromHeader(good + "x", kNoLimit).ok());
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(TrustedFilter::FromHeader(good.substr(0, cut), kNoLimit).ok());
  }
  for (const uint64_t value : {uint64_t{0}, uint64_t{1} << 62, ~uint64_t{0}}) {
    std::string bad = good;
    std::memcpy(bad.data() + 28, &value, 8);
    EXPECT_FALSE(TrustedFilter::FromHeader(bad, kNoLimit).ok()) << value;
  }
  for (const double rate : {0.0, -1.0, 1.0, 0.0 / 0.0, 1.0 / 0.0}) {
    std::string bad = good;
    std::memcpy(bad.data() + 12, &rate, 8);
    EXPECT_FALSE(TrustedFilter::FromHeader(bad, kNoLimit).ok()) << rate;
  }
  std::string unknown_flag = good;
  unknown_flag[4] = 8;
  EXPECT_FALSE(TrustedFilter::FromHeader(unknown_flag, kNoLimit).ok());
}

TEST(TrustedFilter, IsTrustedForOneTimeOnly) {
  TrustedFilter filter = Make(true);
  EXPECT_FALSE(filter.TrustedAt(1));
  filter.Trust(1);
  EXPECT_TRUE(filter.TrustedAt(1));
  EXPECT_FALSE(filter.TrustedAt(2));
}

}  // namespace
}  // namespace tamis::redis
