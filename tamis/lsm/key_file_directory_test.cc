#include "tamis/lsm/key_file_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace tamis::lsm {
namespace {

class KeyFileDirectoryTest : public ::testing::Test {
 protected:
  ~KeyFileDirectoryTest() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<KeyFileDirectory> Open(bool writes = true) {
    return KeyFileDirectory::Open(rocksdb::FileSystem::Default(), path_, writes);
  }
  bool Has(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }

  const std::string path_ = ::testing::TempDir() + "tamis_key_file_directory_test";
  const KeyFileHeader header_ = {.family = 3, .seed = 7};
  const std::vector<uint64_t> hashes_ = {1 << 20, 2 << 20};
};

TEST_F(KeyFileDirectoryTest, AFileIsReadByItsNumberAndHeader) {
  auto files = Open();
  ASSERT_TRUE(files->Write(5, header_, hashes_));
  EXPECT_EQ(files->Read(5, header_)->count(), 2u);
  KeyFileHeader other = header_;
  other.identity[0] = 1;
  EXPECT_EQ(files->Read(5, other).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(files->Read(6, header_).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(files->Rename(5, 6));
  EXPECT_TRUE(files->Read(6, header_).ok());
  EXPECT_FALSE(files->Rename(5, 7));
  files->Delete(6);
  EXPECT_FALSE(Has("6.keys"));
  EXPECT_EQ(files->written(), 1u);
}

TEST_F(KeyFileDirectoryTest, DeletesTheOldFilesThatWereNotUsed) {
  for (const uint64_t number : {1, 2, 4}) ASSERT_TRUE(Open()->Write(number, header_, hashes_));
  std::ofstream(path_ + "/9.keys.tmp") << "half";
  std::ofstream(path_ + "/notes.keys") << "somebody else's";
  auto files = Open();
  EXPECT_FALSE(Has("9.keys.tmp"));
  files->Use(1);
  ASSERT_TRUE(files->Write(2, header_, hashes_));
  ASSERT_TRUE(files->Write(5, header_, hashes_));
  files->DeleteLeftovers();
  for (const char* name : {"1.keys", "2.keys", "5.keys", "notes.keys"}) {
    EXPECT_TRUE(Has(name)) << name;
  }
  EXPECT_FALSE(Has("4.keys"));
}

TEST_F(KeyFileDirectoryTest, IsMadeWithItsFirstFileAndAgainWhenItWasDeleted) {
  auto files = KeyFileDirectory::Open(rocksdb::FileSystem::Default(), path_ + "/a/b", true);
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(files->Write(1, header_, hashes_));
  EXPECT_TRUE(Has("a/b/1.keys"));
  std::filesystem::remove_all(path_);
  ASSERT_TRUE(files->Write(2, header_, hashes_));
  EXPECT_EQ(files->unwritten(), 0u);
}

TEST_F(KeyFileDirectoryTest, ADirectoryThatCannotBeMadeFailsNothing) {
  const auto files = KeyFileDirectory::Open(rocksdb::FileSystem::Default(), "/proc/no/such", true);
  EXPECT_FALSE(files->Write(1, header_, hashes_));
  EXPECT_FALSE(files->Read(1, header_).ok());
  EXPECT_EQ(files->FindSeed(), std::nullopt);
  files->DeleteLeftovers();
  EXPECT_EQ(files->unwritten(), 1u);
}

TEST_F(KeyFileDirectoryTest, AnAbandonedDirectoryIsLeftAsItIs) {
  ASSERT_TRUE(Open()->Write(1, header_, hashes_));
  auto files = Open();
  EXPECT_EQ(files->FindSeed(), 7u);
  files->Abandon();
  EXPECT_FALSE(files->Write(2, header_, hashes_));
  EXPECT_FALSE(files->Read(1, header_).ok());
  files->DeleteLeftovers();
  EXPECT_TRUE(Has("1.keys"));
  EXPECT_FALSE(Has("2.keys"));
}

TEST_F(KeyFileDirectoryTest, AReaderChangesNothing) {
  EXPECT_FALSE(Open(/*writes=*/false)->Write(1, header_, hashes_));
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(Open()->Write(1, header_, hashes_));
  std::ofstream(path_ + "/9.keys.tmp") << "half";
  auto files = Open(/*writes=*/false);
  EXPECT_FALSE(files->Write(2, header_, hashes_));
  files->DeleteLeftovers();
  files->Delete(1);
  EXPECT_TRUE(files->Read(1, header_).ok());
  EXPECT_TRUE(Has("9.keys.tmp"));
  EXPECT_FALSE(Has("2.keys"));
}

}  // namespace
}  // namespace tamis::lsm
