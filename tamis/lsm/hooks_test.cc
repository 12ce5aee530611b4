#include "tamis/lsm/hooks.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <unistd.h>

#include <filesystem>

#include "tamis/lsm/rocksdb_version.h"

namespace tamis::lsm {
namespace {

class HooksTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    state_ = std::make_shared<HookState>(*TreeFilter::Create({.directory = path_ + "/keys"}));
    AttachTo(state_, static_cast<rocksdb::DBOptions*>(&options_));
    AttachTo(state_, static_cast<rocksdb::ColumnFamilyOptions*>(&options_));
  }
  void TearDown() override {
    db_.reset();
    std::filesystem::remove_all(path_);
  }

  void Open() {
    options_.create_if_missing = true;
    const auto status = OpenDatabase(&db_, options_, path_ + "/db");
    ASSERT_TRUE(status.ok()) << status.ToString();
    state_->SetDatabase(db_->GetName());
    state_->NameFamily("default", 0);
    state_->tree().families().ClearBypassReasons(0, kNotShown);
    state_->tree().EndCounting();
  }

  // A collector as RocksDB makes it for a file of this level.
  std::unique_ptr<rocksdb::TablePropertiesCollector> Collector(int level) {
    rocksdb::TablePropertiesCollectorFactory::Context context;
    context.column_family_id = 0;
    context.level_at_creation = level;
    return std::unique_ptr<rocksdb::TablePropertiesCollector>(
        options_.table_properties_collector_factories[0]->CreateTablePropertiesCollector(context));
  }
  // The properties of a file that holds one key and is complete.
  rocksdb::UserCollectedProperties Finish(rocksdb::TablePropertiesCollector* collector) {
    EXPECT_TRUE(collector->AddUserKey("a", "v", rocksdb::kEntryPut, 1, 0).ok());
    rocksdb::UserCollectedProperties properties;
    EXPECT_TRUE(collector->Finish(&properties).ok());
    return properties;
  }

  const std::string path_ = testing::TempDir() + "hooks_test." + std::to_string(getpid());
  rocksdb::Options options_;
  std::shared_ptr<HookState> state_;
  std::unique_ptr<rocksdb::DB> db_;
};

TEST_F(HooksTest, AFileMadeOutsideOfTheDatabaseLeavesNothing) {
  Open();
  for (int i = 0; i < 3; ++i) {
    rocksdb::SstFileWriter writer({}, db_->GetOptions(), db_->DefaultColumnFamily());
    ASSERT_TRUE(writer.Open(path_ + "/new.sst").ok());
    ASSERT_TRUE(writer.Put("a", "v").ok());
    ASSERT_TRUE(writer.Finish().ok());
    EXPECT_EQ(state_->collected().count(), 0u);
  }
  EXPECT_EQ(state_->tree().families().BypassReasonsOf(0), 0u);
}

TEST_F(HooksTest, AFileThatIsGivenUpOrFailsLeavesNothing) {
  (void)Collector(0)->AddUserKey("a", "v", rocksdb::kEntryPut, 1, 0);
  EXPECT_EQ(state_->collected().count(), 0u);
  // Its keys are complete, and what is written after them fails: RocksDB announces no properties.
  Finish(Collector(0).get());
  EXPECT_EQ(state_->collected().count(), 1u);
  rocksdb::TableFileCreationInfo failed;
  failed.cf_name = "default";
  failed.file_path = "000009.sst";
  failed.file_size = 0;
  failed.status = rocksdb::Status::IOError();
  options_.listeners[0]->OnTableFileCreated(failed);
  EXPECT_EQ(state_->collected().count(), 0u);
  // Nor do those that are never announced add up.
  for (int i = 0; i < 5; ++i) Finish(Collector(0).get());
  EXPECT_EQ(state_->collected().count(), 1u);
}

TEST_F(HooksTest, AFlushIsCountedOnceThoughItsOptionsWereAttachedTwice) {
  AttachTo(state_, static_cast<rocksdb::DBOptions*>(&options_));
  AttachTo(state_, static_cast<rocksdb::ColumnFamilyOptions*>(&options_));
  EXPECT_EQ(options_.listeners.size(), 1u);
  EXPECT_EQ(options_.table_properties_collector_factories.size(), 1u);
  Open();
  ASSERT_TRUE(db_->Put({}, "a", "v").ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  EXPECT_EQ(state_->tree().figures().filter.keys, 1u);
  EXPECT_EQ(state_->collected().count(), 0u);
  EXPECT_EQ(state_->tree().families().BypassReasonsOf(0), 0u);
}

// File numbers are those of one database: another one has the same ones.
TEST_F(HooksTest, AnotherDatabaseOpenedWithTheSameOptionsDisturbsNothing) {
  Open();
  ASSERT_TRUE(db_->Put({}, "a", "v").ok());
  ASSERT_TRUE(db_->Flush({}).ok());
  std::unique_ptr<rocksdb::DB> other;
  ASSERT_TRUE(OpenDatabase(&other, db_->GetOptions(), path_ + "/other").ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(other->Put({}, "b", "v").ok());
    ASSERT_TRUE(other->Flush({}).ok());
  }
  ASSERT_TRUE(other->CompactRange({}, nullptr, nullptr).ok());
  EXPECT_EQ(state_->tree().figures().files, 1u);
  EXPECT_EQ(state_->tree().figures().unreconciled, 0u);
  EXPECT_TRUE(state_->tree().MayContain(0, "a"));
  EXPECT_EQ(state_->tree().families().BypassReasonsOf(0), 0u);
}

}  // namespace
}  // namespace tamis::lsm
