#include "tamis/filter/binary_fuse_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tamis/base/random.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

std::vector<uint64_t> Keys(uint64_t stream, uint64_t count) {
  std::vector<uint64_t> hashes(count);
  for (uint64_t i = 0; i < count; ++i) hashes[i] = Key(stream, i);
  return hashes;
}

BinaryFuseFilter Built(std::span<const uint64_t> hashes, double fpr = 0.01, uint64_t seed = 7) {
  auto filter = BinaryFuseFilter::Build(hashes, {.fpr = fpr, .seed = seed});
  EXPECT_TRUE(filter.ok()) << filter.status();
  return *std::move(filter);
}

uint64_t Hits(const BinaryFuseFilter& filter, uint64_t stream, uint64_t count) {
  uint64_t hits = 0;
  for (const uint64_t word : filter.MayContain(Keys(stream, count))) hits += std::popcount(word);
  return hits;
}

TEST(BinaryFuseFilterTest, EveryKeyIsFoundAtEveryNumberAndRate) {
  for (const uint64_t keys : {0, 1, 2, 3, 4, 7, 63, 64, 65, 1000, 30000, 300000}) {
    for (const double fpr : {0.5, 0.3, 0.05, 0.01, 0.001, 1e-6, 0x1p-30}) {
      const BinaryFuseFilter filter = Built(Keys(1, keys), fpr);
      ASSERT_EQ(Hits(filter, 1, keys), keys) << fpr;
      EXPECT_EQ(filter.Count(), keys);
      EXPECT_LE(filter.ExpectedFpr(), fpr);
    }
  }
}

TEST(BinaryFuseFilterTest, AnEmptyOneContainsNothing) {
  EXPECT_EQ(Hits(Built({}, 0.5), 1, 1000), 0u);
  EXPECT_EQ(Built({}).ExpectedFpr(), 0.0);
}

TEST(BinaryFuseFilterTest, OrderAndRepetitionOfTheKeysDoNotMatter) {
  std::vector<uint64_t> keys = Keys(2, 5000);
  const std::string bytes = Built(keys).Serialize();
  std::reverse(keys.begin(), keys.end());
  for (uint64_t i = 0; i < 5000; ++i) keys.push_back(keys[i * i % 5000]);
  EXPECT_EQ(Built(keys).Serialize(), bytes);
}

TEST(BinaryFuseFilterTest, ABatchIsAnsweredAsItsKeysOneByOne) {
  const BinaryFuseFilter filter = Built(Keys(3, 2000), 0.2);
  for (const size_t size : {0, 1, 15, 16, 17, 63, 64, 65, 1000}) {
    const std::vector<uint64_t> hashes = Keys(4, size);
    const Bitmap answers = filter.MayContain(hashes);
    ASSERT_EQ(answers.size(), (size + 63) / 64);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(TestBit(answers, i), filter.MayContain(hashes[i]));
  }
}

// Five sigmas; the check fails for half the rate, which a filter with a bit more would have.
TEST(BinaryFuseFilterTest, TheRateIsTwoToTheMinusF) {
  constexpr uint64_t kAsked = 1 << 20;
  const auto at_most = [](uint64_t hits, double rate) {
    return static_cast<double>(hits) <= kAsked * rate + 5 * std::sqrt(kAsked * rate * (1 - rate));
  };
  for (const uint64_t keys : {50, 1000, 100000}) {
    for (const double fpr : {0.25, 0.01, 0.001}) {
      const BinaryFuseFilter filter = Built(Keys(5, keys), fpr);
      const double expected = std::exp2(-std::ceil(-std::log2(fpr)));
      EXPECT_EQ(filter.ExpectedFpr(), expected);
      const uint64_t hits = Hits(filter, 6, kAsked);
      EXPECT_TRUE(at_most(hits, expected)) << keys << " " << fpr << " " << hits;
      EXPECT_FALSE(at_most(hits, expected / 2)) << keys << " " << fpr << " " << hits;
    }
  }
}

TEST(BinaryFuseFilterTest, MemoryIsThatOfTheClassComment) {
  const auto bits = [](uint64_t keys) {
    const BinaryFuseFilter filter = Built(Keys(7, keys), 0x1p-8);
    EXPECT_LE(keys, BinaryFuseFilter::CapacityFor(filter.SizeBytes(), 0x1p-8));
    EXPECT_EQ(BinaryFuseFilter::FprFor(filter.SizeBytes(), keys), 0x1p-8);
    return 8.0 * static_cast<double>(filter.SizeBytes()) / static_cast<double>(keys) / 8;
  };
  EXPECT_LT(bits(1'000'000), 1.14);
  EXPECT_LT(bits(10'000), 1.30);
}

TEST(BinaryFuseFilterTest, ARateOutsideItsBoundsIsNamed) {
  for (const double fpr : {0.0, 0.9, 1e-12, std::nan("")}) {
    const auto filter = BinaryFuseFilter::Build(Keys(8, 10), {.fpr = fpr});
    EXPECT_EQ(filter.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(filter.status().message(), testing::HasSubstr("fpr"));
  }
}

// --- bytes -------------------------------------------------------------------------------------

TEST(BinaryFuseFilterTest, BytesReadBackAsTheSameFilterCopiedOrMapped) {
  const BinaryFuseFilter filter = Built(Keys(9, 1000), 0.001, 0x1122334455667788);
  const std::string bytes = filter.Serialize();
  for (const OpenMode mode : {OpenMode::kCopy, OpenMode::kBorrow}) {
    const auto read = BinaryFuseFilter::Deserialize(bytes, mode);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->Serialize(), bytes);
    EXPECT_EQ(read->seed(), filter.seed());
    EXPECT_EQ(read->Count(), 1000u);
    EXPECT_EQ(Hits(*read, 9, 1000), 1000u);
    EXPECT_EQ(Hits(*read, 10, 100000), Hits(filter, 10, 100000));
  }
  const std::string shifted = "x" + bytes;
  const std::string_view odd = std::string_view(shifted).substr(1);
  EXPECT_TRUE(BinaryFuseFilter::Deserialize(odd).ok());
  EXPECT_EQ(BinaryFuseFilter::Deserialize(odd, OpenMode::kBorrow).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(BinaryFuseFilterTest, EveryCutAndEveryFlippedBitOfTheBytesIsDataLoss) {
  const std::string bytes = Built(Keys(11, 40)).Serialize();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(BinaryFuseFilter::Deserialize(bytes.substr(0, size)).status().code(),
              StatusCode::kDataLoss);
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_EQ(BinaryFuseFilter::Deserialize(damaged).status().code(), StatusCode::kDataLoss);
  }
}

// Valid checksums over impossible contents.
TEST(BinaryFuseFilterTest, SealedNonsenseIsDataLossOrAFilterAndNeverMore) {
  Random random(12);
  const std::string bytes = Built(Keys(12, 40)).Serialize();
  const auto opened = OpenFilter(bytes, BinaryFuseFilter::kKind, 10, OpenMode::kCopy);
  ASSERT_TRUE(opened.ok());
  int read_all_the_same = 0;
  for (int round = 0; round < 20000; ++round) {
    FilterHeader header = opened->header;
    std::vector<uint64_t> payload(opened->payload.begin(), opened->payload.end());
    if (random.OneIn(3)) payload.resize(random.Uniform(2 * payload.size() + 2));
    for (uint64_t changes = random.Uniform(3); changes > 0; --changes) {
      header.parameters[random.Uniform(10)] = random() >> random.Uniform(64);
    }
    const std::string sealed = SealFilter(header, payload);
    for (const OpenMode mode : {OpenMode::kCopy, OpenMode::kBorrow}) {
      const auto read = BinaryFuseFilter::Deserialize(sealed, mode);
      if (read.ok()) {
        ++read_all_the_same;
        (void)Hits(*read, 12, 50);
      } else {
        EXPECT_EQ(read.status().code(), StatusCode::kDataLoss) << read.status();
      }
    }
  }
  EXPECT_GT(read_all_the_same, 1000);
}

TEST(BinaryFuseFilterTest, TheStoredBytesAreThoseOfVersion1) {
  EXPECT_EQ(Hash(Built(Keys(13, 100), 0.01, 0x5eed).Serialize(), 0), 1079998111418071228u)
      << "bytes changed";
}

}  // namespace
}  // namespace tamis
