#include "tamis/lsm/key_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/lsm/sorted_hashes.h"

namespace tamis::lsm {
namespace {

std::vector<uint64_t> Hashes(uint64_t seed, uint64_t count) {
  Random random(seed);
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < count; ++i) hashes.push_back(random() & kKeptBits);
  if (count > 10) {
    hashes[0] = 0;
    hashes[1] = kKeptBits;
    hashes[2] = uint64_t{7} << 56;
    hashes[3] = (uint64_t{8} << 56) - (uint64_t{1} << kDroppedBits);
  }
  SortDistinctHashes(&hashes);
  return hashes;
}

KeyFileHeader Header() {
  KeyFileHeader header{.family = 3, .seed = 77};
  std::ranges::copy("0123456789abcde", header.identity.begin());
  return header;
}

TEST(SortedHashesTest, SortsAsTheStandardLibraryDoes) {
  Random random(1);
  for (const size_t size : {0, 1, 100, 1023, 1024, 50000}) {
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < size; ++i) {
      hashes.push_back((random.OneIn(3) ? random.Uniform(9) << 20 : random()) & kKeptBits);
    }
    std::vector<uint64_t> expected = hashes;
    std::ranges::sort(expected);
    SortHashes(&hashes);
    ASSERT_EQ(hashes, expected);
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    SortDistinctHashes(&hashes);
    ASSERT_EQ(hashes, expected);
  }
}

TEST(SortedHashesTest, SortsFewAndManySortedPiecesOfAnySize) {
  Random random(2);
  for (const size_t pieces : {1, 2, 3, 15, 16, 17, 40}) {
    std::vector<uint64_t> hashes;
    for (size_t piece = 0; piece < pieces; ++piece) {
      const auto begin = static_cast<std::ptrdiff_t>(hashes.size());
      for (uint64_t i = random.Uniform(1 << random.Uniform(14)); i > 0; --i) {
        hashes.push_back((random.OneIn(3) ? random.Uniform(9) << 20 : random()) & kKeptBits);
      }
      std::sort(hashes.begin() + begin, hashes.end());
    }
    std::vector<uint64_t> expected = hashes;
    std::ranges::sort(expected);
    SortHashes(&hashes);
    ASSERT_EQ(hashes, expected) << pieces;
  }
}

TEST(SortedHashesTest, DifferenceCountsCopies) {
  const HashDifference difference =
      DifferenceOf(std::vector<uint64_t>{1, 2, 2, 3, 5}, std::vector<uint64_t>{2, 3, 3, 4, 5});
  EXPECT_EQ(difference.added, (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(difference.removed, (std::vector<uint64_t>{1, 2}));
}

class KeyFileTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "key_file_test." + std::to_string(getpid());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string directory_;
  rocksdb::FileSystem* const disk_ = rocksdb::FileSystem::Default().get();
};

TEST_F(KeyFileTest, GivesBackTheHashesOfAnySections) {
  const std::string path = directory_ + "/1.keys";
  for (const uint64_t count : {0, 1, 5000, 100000}) {
    const std::vector<uint64_t> hashes = Hashes(count + 1, count);
    ASSERT_TRUE(KeyFile::Write(disk_, path, Header(), hashes).ok());
    const auto file = KeyFile::Open(disk_, path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->header().family, 3u);
    EXPECT_EQ(file->header().identity, Header().identity);
    EXPECT_EQ(file->header().seed, 77u);
    EXPECT_EQ(file->count(), hashes.size());
    std::vector<uint64_t> all;
    ASSERT_TRUE(file->Append(0, 256, &all).ok());
    EXPECT_EQ(all, hashes);
    std::vector<uint64_t> part;
    ASSERT_TRUE(file->Append(7, 9, &part).ok());
    std::erase_if(all, [](uint64_t hash) { return hash >> 56 != 7 && hash >> 56 != 8; });
    EXPECT_EQ(part, all);
    ASSERT_TRUE(file->Append(9, 9, &part).ok());
    EXPECT_EQ(part, all);
    if (count == 100000) {
      EXPECT_LT(file->size_bytes(), 5 * count);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_F(KeyFileTest, SaysWhatIsWrong) {
  const std::string path = directory_ + "/1.keys";
  EXPECT_EQ(KeyFile::Open(disk_, path).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(KeyFile::Write(disk_, directory_ + "/no/1.keys", Header(), {}).code(),
            StatusCode::kUnavailable);
  const std::string bytes = KeyFile::Encode(Header(), Hashes(1, 3000));
  // Any byte changed, any length cut: an error, from the header or from its section.
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = bytes;
    if (i % 2 == 0) {
      damaged[random.Uniform(bytes.size())] ^= static_cast<char>(1 + random.Uniform(255));
    } else {
      damaged.resize(random.Uniform(bytes.size()));
    }
    const auto file = KeyFile::Borrow(damaged);
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), StatusCode::kDataLoss);
      continue;
    }
    std::vector<uint64_t> hashes{1};
    EXPECT_EQ(file->Append(0, 256, &hashes).code(), StatusCode::kDataLoss);
    EXPECT_EQ(hashes.size(), 1u);
  }
  // A file that has become shorter since it was opened.
  ASSERT_TRUE(KeyFile::Write(disk_, path, Header(), Hashes(1, 3000)).ok());
  const auto file = KeyFile::Open(disk_, path);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path, 4000);
  std::vector<uint64_t> hashes;
  EXPECT_EQ(file->Append(0, 256, &hashes).code(), StatusCode::kDataLoss);
}

TEST_F(KeyFileTest, TheStoredBytesAreThoseOfVersion1) {
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 100; ++i) hashes.push_back(Mix(i) & kKeptBits);
  SortDistinctHashes(&hashes);
  const uint64_t hash = Hash(KeyFile::Encode(Header(), hashes), 0);
  EXPECT_EQ(hash, 5524857390716620766u) << "bytes changed";
}

}  // namespace
}  // namespace tamis::lsm
