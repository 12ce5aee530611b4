// Where key files lie: in the database's own file system, or nowhere.
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/env_encryption.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/key_file.h"
#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/tree_filter.h"

namespace tamis::lsm {
namespace {

class KeyFilePlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(path_);
    options_.create_if_missing = true;
  }
  void TearDown() override {
    db_.reset();
    std::filesystem::remove_all(path_);
  }

  void Open(const std::string& keys = "") {
    auto opened = FilteredDB::Open({.directory = keys}, options_, path_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    db_ = *std::move(opened);
    db_->filter().WaitUntilCounted();
  }
  void PutAndFlush(const std::string& key) {
    ASSERT_TRUE(db_->Put({}, key, "v").ok());
    ASSERT_TRUE(db_->Flush({}).ok());
  }
  uint64_t written() const { return db_->filter().tree().figures().written; }
  std::vector<std::filesystem::path> FilesOf(const std::string& extension) const {
    std::vector<std::filesystem::path> files;
    if (!std::filesystem::exists(path_)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file() && entry.path().extension() == extension) {
        files.push_back(entry.path());
      }
    }
    return files;
  }

  std::unique_ptr<rocksdb::Env> env_;  // outlives the database
  const std::string path_ = testing::TempDir() + "key_file_place." + std::to_string(getpid());
  rocksdb::Options options_;
  std::unique_ptr<FilteredDB> db_;
};

TEST_F(KeyFilePlaceTest, AnEncryptedDatabaseHasEncryptedKeyFiles) {
  std::shared_ptr<rocksdb::EncryptionProvider> provider;
  ASSERT_TRUE(rocksdb::EncryptionProvider::CreateFromString({}, "CTR://test", &provider).ok());
  env_.reset(rocksdb::NewEncryptedEnv(rocksdb::Env::Default(), provider));
  options_.env = env_.get();
  Open();
  PutAndFlush("a");
  EXPECT_EQ(written(), 1u);
  const auto keys = FilesOf(".keys");
  ASSERT_EQ(keys.size(), 1u);
  std::ifstream file(keys[0], std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(bytes.find("TAMISKEY"), bytes.npos);
  EXPECT_TRUE(KeyFile::Open(env_->GetFileSystem().get(), keys[0]).ok());
  // They are read as they were written.
  db_.reset();
  Open();
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(db_->filter().tree().figures().filter.keys, 1u);
  EXPECT_FALSE(db_->filter().MayContain(db_->DefaultColumnFamily(), "b"));
}

TEST_F(KeyFilePlaceTest, ADatabaseInMemoryLeavesNothingOnTheDisk) {
  env_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  options_.env = env_.get();
  Open();
  PutAndFlush("a");
  EXPECT_EQ(written(), 1u);
  db_.reset();
  Open();
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(db_->filter().tree().figures().filter.keys, 1u);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(KeyFilePlaceTest, KeyFilesHaveThePermissionsOfSstFiles) {
  const auto mode_of = [](const std::filesystem::path& path) {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  };
  rocksdb::Env::Default()->SetAllowNonOwnerAccess(false);
  Open();
  PutAndFlush("a");
  ASSERT_EQ(FilesOf(".keys").size(), 1u);
  ASSERT_EQ(FilesOf(".sst").size(), 1u);
  EXPECT_EQ(mode_of(FilesOf(".keys")[0]), mode_of(FilesOf(".sst")[0]));
  rocksdb::Env::Default()->SetAllowNonOwnerAccess(true);
}

// Hashes of the keys must not lie in the clear where the keys themselves do not.
TEST_F(KeyFilePlaceTest, WithoutTheDatabasesEnvThereAreNoKeyFiles) {
  env_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  options_.env = env_.get();
  auto filter = *DatabaseFilter::Create({.directory = path_ + "/keys"});
  filter->Attach(&options_);
  std::unique_ptr<rocksdb::DB> made;
  ASSERT_TRUE(OpenDatabase(&made, options_, path_).ok());
  rocksdb::DB* const opened = made.release();
  db_ = std::make_unique<FilteredDB>(
      opened, filter, std::vector<rocksdb::ColumnFamilyHandle*>{opened->DefaultColumnFamily()});
  filter->WaitUntilCounted();
  PutAndFlush("a");
  EXPECT_EQ(written(), 0u);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(filter->MayContain(opened->DefaultColumnFamily(), "a"));
  EXPECT_FALSE(filter->MayContain(opened->DefaultColumnFamily(), "b"));
}

TEST_F(KeyFilePlaceTest, ADirectoryThatCannotBeMadeFailsNoOpening) {
  Open("/proc/no/such");
  PutAndFlush("a");
  EXPECT_EQ(db_->filter().Metrics()["unwritten"], 1u);
  EXPECT_TRUE(db_->filter().MayContain(db_->DefaultColumnFamily(), "a"));
  EXPECT_FALSE(db_->filter().MayContain(db_->DefaultColumnFamily(), "b"));
  db_.reset();
  Open("/proc/no/such");
  EXPECT_TRUE(db_->filter().MayContain(db_->DefaultColumnFamily(), "a"));
  EXPECT_FALSE(db_->filter().MayContain(db_->DefaultColumnFamily(), "b"));
}

TEST_F(KeyFilePlaceTest, ADatabaseThatCannotBeOpenedLeavesNoDirectory) {
  options_.create_if_missing = false;
  EXPECT_FALSE(FilteredDB::Open({}, options_, path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/tamis.keys"));
}

}  // namespace
}  // namespace tamis::lsm
