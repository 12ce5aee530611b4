#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/tree_filter.h"

#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/stats_history.h>
#include <rocksdb/trace_reader_writer.h>
#include <rocksdb/utilities/options_util.h>
#include <rocksdb/utilities/replayer.h>
#include <rocksdb/utilities/transaction_db.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "tamis/base/random.h"
#include "tamis/lsm/rocksdb_version.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

class FilteredDBTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "filtered_db_test." + std::to_string(getpid());
    std::filesystem::remove_all(path_);
    options_.create_if_missing = true;
    options_.write_buffer_size = 64 << 10;
    options_.level0_file_num_compaction_trigger = 3;
    options_.target_file_size_base = 32 << 10;
    options_.max_bytes_for_level_base = 128 << 10;
    Open();
  }
  void TearDown() override {
    Close();
    std::filesystem::remove_all(path_);
    std::filesystem::remove_all(path_ + ".sst");
  }
  void Open() {
    auto db = FilteredDB::Open({}, options_, path_, {{rocksdb::kDefaultColumnFamilyName, options_}},
                               &handles_);
    ASSERT_TRUE(db.ok()) << db.status();
    db_ = *std::move(db);
  }
  void Close() {
    for (ColumnFamilyHandle* handle : handles_) (void)db_->DestroyColumnFamilyHandle(handle);
    handles_.clear();
    db_.reset();
  }

  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  void Put(const std::string& key) {
    ASSERT_TRUE(db_->Put({}, handles_[0], key, std::string(50, 'v')).ok());
  }

  // Every key asked of both; how many the filter denied.
  uint64_t Compare(uint64_t keys, const rocksdb::Snapshot* snapshot = nullptr) {
    rocksdb::ReadOptions read;
    read.snapshot = snapshot;
    const uint64_t before = db_->filter().tree().figures().excluded;
    for (uint64_t i = 0; i < keys; ++i) {
      std::string ours;
      std::string theirs;
      const auto our_status = db_->Get(read, handles_[0], Key(i), &ours);
      const auto their_status = db_->GetBaseDB()->Get(read, handles_[0], Key(i), &theirs);
      EXPECT_EQ(our_status, their_status) << Key(i);
      EXPECT_EQ(ours, theirs) << Key(i);
    }
    return db_->filter().tree().figures().excluded - before;
  }

  rocksdb::Options options_;
  std::string path_;
  std::vector<ColumnFamilyHandle*> handles_;
  std::unique_ptr<FilteredDB> db_;
};

TEST_F(FilteredDBTest, AnswersEqualThoseOfTheDatabaseUnderAllOperations) {
  constexpr uint64_t kKeys = 4000;
  constexpr uint64_t kSeed = 1;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  uint64_t denied = 0;
  for (int round = 0; round < 6; ++round) {
    const rocksdb::Snapshot* snapshot = nullptr;
    db_->filter().WaitUntilCounted();
    for (int step = 0; step < 300; ++step) {
      const uint64_t choice = random.Uniform(100);
      if (choice < 80) {
        for (int i = 0; i < 20; ++i) {
          const std::string key = Key(random.Uniform(kKeys / 2));
          if (random.OneIn(4)) {
            ASSERT_TRUE(db_->Delete({}, handles_[0], key).ok());
          } else {
            Put(key);
          }
        }
      } else if (choice < 86) {
        ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
      } else if (choice < 88) {
        rocksdb::CompactRangeOptions compact;
        compact.change_level = random.OneIn(2);
        (void)db_->CompactRange(compact, handles_[0], nullptr, nullptr);
      } else if (choice < 90) {
        const std::string from = Key(random.Uniform(kKeys));
        ASSERT_TRUE(db_->DeleteRange({}, handles_[0], from, from + "1").ok());
      } else if (choice < 92) {
        if (snapshot != nullptr) db_->ReleaseSnapshot(snapshot);
        snapshot = db_->GetSnapshot();
      } else if (choice < 94) {
        const std::string file = path_ + ".sst";
        rocksdb::SstFileWriter writer({}, options_);
        ASSERT_TRUE(writer.Open(file).ok());
        const uint64_t first = random.Uniform(9);
        for (uint64_t i = 0; i < 5; ++i) {
          ASSERT_TRUE(writer.Put("key1" + std::to_string(first) + std::to_string(i), "w").ok());
        }
        ASSERT_TRUE(writer.Finish().ok());
        rocksdb::DB* const into = random.OneIn(3) ? db_->GetBaseDB() : db_.get();
        ASSERT_TRUE(into->IngestExternalFile(handles_[0], {file}, {}).ok());
      } else if (choice < 95) {
        denied += Compare(kKeys, snapshot);
      }
    }
    denied += Compare(kKeys);
    db_->filter().WaitUntilReconciled();
    denied += Compare(kKeys, snapshot);
    if (snapshot != nullptr) db_->ReleaseSnapshot(snapshot);
    EXPECT_EQ(db_->filter().BypassReasonsOf(handles_[0]), "");
    EXPECT_EQ(db_->filter().tree().figures().filter.missed, 0u);
    EXPECT_TRUE(db_->filter().tree().IsExact());
    Close();
    if (round % 3 == 1) std::filesystem::remove_all(path_ + "/tamis.keys");
    if (round % 3 == 2) {
      for (const auto& entry : std::filesystem::directory_iterator(path_ + "/tamis.keys")) {
        if (random.OneIn(2)) std::filesystem::resize_file(entry.path(), 100);
      }
    }
    Open();
  }
  EXPECT_GT(denied, kKeys);
}

TEST_F(FilteredDBTest, BatchesGiveWhatTheDatabaseGives) {
  db_->filter().WaitUntilCounted();
  for (uint64_t i = 0; i < 1000; i += 3) Put(Key(i));
  ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  for (uint64_t i = 1; i < 1000; i += 9) Put(Key(i));
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < 1000; ++i) texts.push_back(Key(i));
  const std::vector<rocksdb::Slice> keys(texts.begin(), texts.end());
  std::vector<ColumnFamilyHandle*> families(keys.size(), handles_[0]);
  std::vector<std::string> ours;
  std::vector<std::string> theirs;
  EXPECT_EQ(db_->MultiGet({}, families, keys, &ours),
            db_->GetBaseDB()->MultiGet({}, families, keys, &theirs));
  EXPECT_EQ(ours, theirs);
  for (const bool several : {false, true}) {
    std::vector<rocksdb::PinnableSlice> values(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    if (several) {
      db_->MultiGet({}, keys.size(), families.data(), keys.data(), values.data(), statuses.data());
    } else {
      db_->MultiGet({}, handles_[0], keys.size(), keys.data(), values.data(), statuses.data());
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(statuses[i].ok(), i % 3 == 0 || i % 9 == 1) << i;
      EXPECT_EQ(values[i].ToString(), theirs[i]);
    }
  }
  std::string value;
  EXPECT_FALSE(db_->KeyMayExist({}, handles_[0], Key(2), &value));
  EXPECT_TRUE(db_->KeyMayExist({}, handles_[0], Key(3), &value));
  EXPECT_GT(db_->filter().tree().figures().excluded, 1500u);
}

TEST_F(FilteredDBTest, AFamilyThatIsNotWatchedPassesThroughAndSaysWhy) {
  db_->filter().WaitUntilCounted();
  ColumnFamilyHandle* behind = nullptr;
  ASSERT_TRUE(db_->GetBaseDB()->CreateColumnFamily(options_, "behind", &behind).ok());
  handles_.push_back(behind);
  ASSERT_TRUE(db_->Put({}, behind, "a", "b").ok());
  std::string value;
  EXPECT_TRUE(db_->Get({}, behind, "a", &value).ok());
  EXPECT_NE(db_->filter().BypassReasonsOf(behind), "");
  rocksdb::ColumnFamilyOptions reversed(options_);
  reversed.comparator = rocksdb::ReverseBytewiseComparator();
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(reversed, "reversed", &other).ok());
  handles_.push_back(other);
  EXPECT_EQ(db_->filter().BypassReasonsOf(other), "its comparator is not bytewise");
  ColumnFamilyHandle* watched = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "watched", &watched).ok());
  handles_.push_back(watched);
  EXPECT_EQ(db_->filter().BypassReasonsOf(watched), "");
  EXPECT_TRUE(db_->Get({}, watched, "a", &value).IsNotFound());
}

// A method that StackableDB does not forward is answered by the defaults of rocksdb::DB, and
// differs here.
TEST_F(FilteredDBTest, EveryPropertyAndMethodIsAnsweredByTheBase) {
  using rocksdb::DB;
  db_->filter().WaitUntilCounted();
  for (uint64_t i = 0; i < 2000; ++i) Put(Key(i));
  ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  ASSERT_TRUE(db_->CompactRange({}, handles_[0], nullptr, nullptr).ok());
  db_->filter().WaitUntilReconciled();
  ColumnFamilyHandle* const family = handles_[0];
  const auto text = [](const Status& status) { return status.ToString(); };
  const auto trace_to_nowhere = [&] {
    std::unique_ptr<rocksdb::TraceWriter> writer;
    EXPECT_TRUE(
        rocksdb::NewFileTraceWriter(rocksdb::Env::Default(), {}, path_ + "/trace", &writer).ok());
    return writer;
  };
  const auto value_of = [&](DB* db, const std::string& key) {
    std::string value;
    const Status status = db->Get({}, family, key, &value);
    return text(status) + value;
  };
  const std::map<std::string, std::function<std::string(DB*)>> kQuestions = {
    {"DefaultColumnFamily",
     [&](DB* db) { return std::to_string(db->DefaultColumnFamily()->GetID()); }},
    {"GetRootDB", [&](DB* db) { return db->GetRootDB()->GetName(); }},
    {"Put with a timestamp", [&](DB* db) { return text(db->Put({}, family, "a", "t", "v")); }},
    {"Delete with a timestamp", [&](DB* db) { return text(db->Delete({}, family, "a", "t")); }},
    {"SingleDelete with a timestamp",
     [&](DB* db) { return text(db->SingleDelete({}, family, "a", "t")); }},
    {"DeleteRange with a timestamp",
     [&](DB* db) { return text(db->DeleteRange({}, family, "a", "b", "t")); }},
    {"Merge with a timestamp", [&](DB* db) { return text(db->Merge({}, family, "a", "t", "v")); }},
    {"Put",
     [&](DB* db) {
       const Status status = db->Put({}, family, "put", "v");
       return text(status) + value_of(db, "put");
     }},
    {"Delete",
     [&](DB* db) {
       const Status status = db->Delete({}, family, Key(7));
       return text(status) + value_of(db, Key(7));
     }},
    {"SingleDelete",
     [&](DB* db) {
       const Status status = db->SingleDelete({}, family, Key(8));
       return text(status) + value_of(db, Key(8));
     }},
    {"DeleteRange",
     [&](DB* db) {
       const Status status = db->DeleteRange({}, family, Key(9), Key(9) + "x");
       return text(status) + value_of(db, Key(9));
     }},
    {"Merge", [&](DB* db) { return text(db->Merge({}, family, "merged", "v")); }},
    {"Write",
     [&](DB* db) {
       rocksdb::WriteBatch batch;
       (void)batch.Put(family, "batch", "v");
       const Status status = db->Write({}, &batch);
       return text(status) + value_of(db, "batch");
     }},
    {"PutEntity and GetEntity",
     [&](DB* db) {
       rocksdb::PinnableWideColumns columns;
       const Status put = db->PutEntity({}, family, "entity", {{"name", "value"}});
       const Status got = db->GetEntity({}, family, "entity", &columns);
       return text(put) + text(got) + std::to_string(columns.columns().size());
     }},
    {"NewIterator",
     [&](DB* db) {
       const std::unique_ptr<rocksdb::Iterator> keys(db->NewIterator({}, family));
       uint64_t count = 0;
       for (keys->SeekToFirst(); keys->Valid(); keys->Next()) ++count;
       return text(keys->status()) + std::to_string(count);
     }},
    {"GetSnapshot",
     [&](DB* db) {
       const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
       const auto number = snapshot->GetSequenceNumber();
       db->ReleaseSnapshot(snapshot);
       return std::to_string(number);
     }},
    {"GetApproximateSizes",
     [&](DB* db) {
       const rocksdb::Range range("k", "l");
       uint64_t size = 0;
       return text(db->GetApproximateSizes({}, family, &range, 1, &size)) + std::to_string(size);
     }},
    {"GetApproximateMemTableStats",
     [&](DB* db) {
       uint64_t count = 0;
       uint64_t size = 0;
       db->GetApproximateMemTableStats(family, rocksdb::Range("k", "l"), &count, &size);
       return std::to_string(count) + " " + std::to_string(size);
     }},
    {"CompactFiles",
     [&](DB* db) { return text(db->CompactFiles({}, family, {"/999999.sst"}, 1)); }},
#if !TAMIS_ROCKSDB_SINCE(10, 0)
    {"DeleteFile", [&](DB* db) { return text(db->DeleteFile("/999999.sst")); }},
#endif
    {"DisableManualCompaction",
     [&](DB* db) {
       db->DisableManualCompaction();
       const Status refused = db->CompactRange({}, family, nullptr, nullptr);
       db->EnableManualCompaction();
       return text(refused);
     }},
    {"GetLiveFilesChecksumInfo",
     [&](DB* db) {
       const std::unique_ptr<rocksdb::FileChecksumList> list(rocksdb::NewFileChecksumList());
       return text(db->GetLiveFilesChecksumInfo(list.get())) + std::to_string(list->size());
     }},
    {"GetPropertiesOfTablesInRange",
     [&](DB* db) {
       const rocksdb::Range range("k", "l");
       rocksdb::TablePropertiesCollection some;
       return text(db->GetPropertiesOfTablesInRange(family, &range, 1, &some)) +
              std::to_string(some.size());
     }},
    {"GetStatsHistory",
     [&](DB* db) {
       std::unique_ptr<rocksdb::StatsHistoryIterator> history;
       return text(db->GetStatsHistory(0, 1, &history));
     }},
    {"StartTrace",
     [&](DB* db) {
       const Status status = db->StartTrace({}, trace_to_nowhere());
       return text(status) + text(db->EndTrace());
     }},
    {"StartIOTrace",
     [&](DB* db) {
       const Status status = db->StartIOTrace({}, trace_to_nowhere());
       return text(status) + text(db->EndIOTrace());
     }},
    {"StartBlockCacheTrace",
     [&](DB* db) {
       const Status status = db->StartBlockCacheTrace({}, trace_to_nowhere());
       return text(status) + text(db->EndBlockCacheTrace());
     }},
    {"CreateColumnFamilies",
     [&](DB* db) {
       std::vector<ColumnFamilyHandle*> made;
       const Status status = db->CreateColumnFamilies(options_, {"one", "two"}, &made);
       const Status dropped = db->DropColumnFamilies(made);
       const Status again = made.empty() ? Status() : db->DropColumnFamily(made[0]);
       for (ColumnFamilyHandle* handle : made) (void)db->DestroyColumnFamilyHandle(handle);
       return text(status) + text(dropped) + text(again) + std::to_string(made.size());
     }},
    {"CreateColumnFamilyWithImport",
     [&](DB* db) {
       ColumnFamilyHandle* made = nullptr;
       return text(db->CreateColumnFamilyWithImport(options_, "imported",
                                                    rocksdb::ImportColumnFamilyOptions(),
                                                    rocksdb::ExportImportFilesMetaData(), &made));
     }},
    {"IngestExternalFiles",
     [&](DB* db) {
       rocksdb::IngestExternalFileArg files;
       files.column_family = family;
       files.external_files = {path_ + "/missing"};
       return text(db->IngestExternalFiles({files}));
     }},
    {"Resume", [&](DB* db) { return text(db->Resume()); }},
    {"Get with a timestamp",
     [&](DB* db) {
       std::string value;
       std::string timestamp;
       return text(db->Get({}, family, Key(1), &value, &timestamp)) + value;
     }},
    {"MultiGet with timestamps",
     [&](DB* db) {
       std::vector<std::string> values;
       std::vector<std::string> timestamps;
       return text(db->MultiGet({}, {family}, {Key(1)}, &values, &timestamps)[0]);
     }},
    {"GetMergeOperands",
     [&](DB* db) {
       rocksdb::PinnableSlice operands[4];
       rocksdb::GetMergeOperandsOptions options;
       options.expected_max_number_of_operands = 4;
       int count = 0;
       return text(db->GetMergeOperands({}, family, Key(1), operands, &options, &count)) +
              std::to_string(count);
     }},
    {"GetProperty",
     [&](DB* db) {
       std::string value;
       return std::to_string(db->GetProperty(family, "rocksdb.levelstats", &value)) + value;
     }},
    {"GetMapProperty",
     [&](DB* db) {
       std::map<std::string, std::string> values;
       return std::to_string(db->GetMapProperty(family, "rocksdb.cfstats", &values)) +
              std::to_string(values.size());
     }},
    {"GetAggregatedIntProperty",
     [&](DB* db) {
       uint64_t value = 0;
       return std::to_string(
                  db->GetAggregatedIntProperty(DB::Properties::kEstimateNumKeys, &value)) +
              std::to_string(value);
     }},
    {"NumberLevels", [&](DB* db) { return std::to_string(db->NumberLevels(family)); }},
#if !TAMIS_ROCKSDB_SINCE(11, 0)
    {"MaxMemCompactionLevel",
     [&](DB* db) { return std::to_string(db->MaxMemCompactionLevel(family)); }},
#endif
    {"Level0StopWriteTrigger",
     [&](DB* db) { return std::to_string(db->Level0StopWriteTrigger(family)); }},
    {"GetName", [&](DB* db) { return db->GetName(); }},
    {"GetEnv", [&](DB* db) { return std::to_string(db->GetEnv() == db_->GetBaseDB()->GetEnv()); }},
    {"GetFileSystem",
     [&](DB* db) {
       return std::to_string(db->GetFileSystem() == db_->GetBaseDB()->GetFileSystem());
     }},
    {"GetOptions",
     [&](DB* db) { return std::to_string(db->GetOptions(family).write_buffer_size); }},
    {"GetDBOptions", [&](DB* db) { return std::to_string(db->GetDBOptions().listeners.size()); }},
    {"GetLatestSequenceNumber",
     [&](DB* db) { return std::to_string(db->GetLatestSequenceNumber()); }},
    {"GetDbIdentity",
     [&](DB* db) {
       std::string identity;
       return text(db->GetDbIdentity(identity)) + identity;
     }},
    {"GetDbSessionId",
     [&](DB* db) {
       std::string identity;
       return text(db->GetDbSessionId(identity)) + identity;
     }},
    {"GetLiveFiles",
     [&](DB* db) {
       std::vector<std::string> files;
       uint64_t size = 0;
       return text(db->GetLiveFiles(files, &size, false)) + std::to_string(files.size());
     }},
    {"GetSortedWalFiles",
     [&](DB* db) {
       rocksdb::VectorLogPtr files;
       return text(db->GetSortedWalFiles(files)) + std::to_string(files.size());
     }},
    {"GetCurrentWalFile",
     [&](DB* db) {
       std::unique_ptr<rocksdb::LogFile> file;
       return text(db->GetCurrentWalFile(&file));
     }},
    {"GetCreationTimeOfOldestFile",
     [&](DB* db) {
       uint64_t time = 0;
       return text(db->GetCreationTimeOfOldestFile(&time)) + std::to_string(time);
     }},
    {"GetUpdatesSince",
     [&](DB* db) {
       std::unique_ptr<rocksdb::TransactionLogIterator> updates;
       return text(db->GetUpdatesSince(db->GetLatestSequenceNumber(), &updates));
     }},
    {"GetLiveFilesMetaData",
     [&](DB* db) {
       std::vector<rocksdb::LiveFileMetaData> files;
       db->GetLiveFilesMetaData(&files);
       return std::to_string(files.size());
     }},
    {"GetColumnFamilyMetaData",
     [&](DB* db) {
       rocksdb::ColumnFamilyMetaData metadata;
       db->GetColumnFamilyMetaData(family, &metadata);
       return std::to_string(metadata.file_count);
     }},
    {"GetAllColumnFamilyMetaData",
     [&](DB* db) {
       std::vector<rocksdb::ColumnFamilyMetaData> metadata;
       db->GetAllColumnFamilyMetaData(&metadata);
       return std::to_string(metadata.size());
     }},
    {"GetLiveFilesStorageInfo",
     [&](DB* db) {
       std::vector<rocksdb::LiveFileStorageInfo> files;
       return text(db->GetLiveFilesStorageInfo({}, &files)) + std::to_string(files.size());
     }},
    {"VerifyChecksum", [&](DB* db) { return text(db->VerifyChecksum({})); }},
    {"VerifyFileChecksums", [&](DB* db) { return text(db->VerifyFileChecksums({})); }},
    {"GetPropertiesOfAllTables",
     [&](DB* db) {
       rocksdb::TablePropertiesCollection all;
       return text(db->GetPropertiesOfAllTables(family, &all)) + std::to_string(all.size());
     }},
    {"SuggestCompactRange",
     [&](DB* db) { return text(db->SuggestCompactRange(family, nullptr, nullptr)); }},
    {"PromoteL0", [&](DB* db) { return text(db->PromoteL0(family, 0)); }},
    {"TryCatchUpWithPrimary", [&](DB* db) { return text(db->TryCatchUpWithPrimary()); }},
    {"GetFullHistoryTsLow",
     [&](DB* db) {
       std::string low;
       return text(db->GetFullHistoryTsLow(family, &low));
     }},
    {"IncreaseFullHistoryTsLow",
     [&](DB* db) { return text(db->IncreaseFullHistoryTsLow(family, "1")); }},
    {"SyncWAL", [&](DB* db) { return text(db->SyncWAL()); }},
    {"FlushWAL", [&](DB* db) { return text(db->FlushWAL(true)); }},
    {"LockWAL",
     [&](DB* db) {
       const Status first = db->LockWAL();
       return text(first) + text(db->UnlockWAL());
     }},
    {"PauseBackgroundWork",
     [&](DB* db) {
       const Status first = db->PauseBackgroundWork();
       return text(first) + text(db->ContinueBackgroundWork());
     }},
    {"DisableFileDeletions",
     [&](DB* db) {
       const Status first = db->DisableFileDeletions();
       return text(first) + text(EnableFileDeletions(db));
     }},
    {"EnableAutoCompaction", [&](DB* db) { return text(db->EnableAutoCompaction({family})); }},
    {"SetOptions",
     [&](DB* db) {
       return text(db->SetOptions(family, {{"max_write_buffer_number", "3"}}));
     }},
    {"SetDBOptions",
     [&](DB* db) {
       return text(db->SetDBOptions({{"stats_dump_period_sec", "60"}}));
     }},
    {"ResetStats", [&](DB* db) { return text(db->ResetStats()); }},
    {"EndTrace", [&](DB* db) { return text(db->EndTrace()); }},
    {"EndIOTrace", [&](DB* db) { return text(db->EndIOTrace()); }},
    {"EndBlockCacheTrace", [&](DB* db) { return text(db->EndBlockCacheTrace()); }},
    {"NewDefaultReplayer",
     [&](DB* db) {
       std::unique_ptr<rocksdb::Replayer> replayer;
       return text(db->NewDefaultReplayer({family}, nullptr, &replayer));
     }},
    {"NewIterators",
     [&](DB* db) {
       std::vector<rocksdb::Iterator*> iterators;
       const Status status = db->NewIterators({}, {family}, &iterators);
       for (rocksdb::Iterator* iterator : iterators) delete iterator;
       return text(status) + std::to_string(iterators.size());
     }},
  };
  for (const auto& [name, ask] : kQuestions) {
    EXPECT_EQ(ask(db_.get()), ask(db_->GetBaseDB())) << name;
  }
}

TEST_F(FilteredDBTest, WithoutUsItIsAPlainDatabaseAgain) {
  db_->filter().WaitUntilCounted();
  for (uint64_t i = 0; i < 3000; ++i) Put(Key(i));
  ASSERT_TRUE(db_->Resume().ok());
  std::vector<rocksdb::ColumnFamilyMetaData> metadata;
  db_->GetAllColumnFamilyMetaData(&metadata);
  EXPECT_EQ(metadata.size(), 1u);
  Close();
  rocksdb::DBOptions db_options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  ASSERT_TRUE(rocksdb::LoadLatestOptions({}, path_, &db_options, &families).ok());
  std::unique_ptr<rocksdb::DB> plain;
  ASSERT_TRUE(OpenDatabase(&plain, options_, path_).ok());
  std::string value;
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(plain->Get({}, Key(i), &value).ok());
  // Keys that the plain database writes while no filter is attached.
  for (uint64_t i = 3000; i < 6000; ++i) ASSERT_TRUE(plain->Put({}, Key(i), "v").ok());
  ASSERT_TRUE(plain->CompactRange({}, nullptr, nullptr).ok());
  plain.reset();
  Open();
  db_->filter().WaitUntilCounted();
  EXPECT_GT(Compare(8000), 1900u);
}

TEST_F(FilteredDBTest, TellsItsFiguresAndItsStateAsProperties) {
  db_->filter().WaitUntilCounted();
  for (uint64_t i = 0; i < 1000; ++i) Put(Key(i));
  ASSERT_TRUE(db_->Delete({}, handles_[0], Key(0)).ok());
  ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  std::string value;
  EXPECT_TRUE(
      db_->Get({}, handles_[0], Key(0), &value).IsNotFound());  // a tombstone of it is there
  EXPECT_TRUE(db_->Get({}, handles_[0], Key(1), &value).ok());
  for (uint64_t i = 1000; i < 2000; ++i) {
    EXPECT_TRUE(db_->Get({}, handles_[0], Key(i), &value).IsNotFound());
  }
  const auto number = [&](const std::string& name) {
    uint64_t found = 0;
    EXPECT_TRUE(db_->GetIntProperty(handles_[0], "tamis.lsm." + name, &found)) << name;
    return found;
  };
  EXPECT_EQ(number("asked"), 1002);
  EXPECT_EQ(number("excluded") + number("false_passes"), 1001);
  EXPECT_GE(number("false_passes"), 1);
  EXPECT_EQ(number("counting"), 0);
  uint64_t none = 0;
  EXPECT_FALSE(db_->GetIntProperty(handles_[0], "tamis.lsm.nothing", &none));
  EXPECT_FALSE(db_->GetIntProperty(handles_[0], "tamis.lsm", &none));
  EXPECT_TRUE(db_->GetIntProperty(handles_[0], "rocksdb.estimate-num-keys", &none));
  std::map<std::string, std::string> lines;
  ASSERT_TRUE(db_->GetMapProperty(handles_[0], "tamis.lsm", &lines));
  EXPECT_EQ(lines["state"], "answers");
  db_->filter().tree().families().AddBypassReasons(handles_[0]->GetID(), kComparator);
  ASSERT_TRUE(db_->GetProperty(handles_[0], "tamis.lsm", &value));
  EXPECT_NE(value.find("state: passes through: its comparator is not bytewise\n"), value.npos);
  const uint64_t before = number("false_passes");
  EXPECT_TRUE(db_->Get({}, handles_[0], Key(5000), &value).IsNotFound());
  EXPECT_EQ(number("false_passes"), before);
}

// Keys that come in order are never compacted, so that no file is ever deleted.
TEST_F(FilteredDBTest, FiltersOfMemtablesThatAreGoneAreFreed) {
  Close();
  options_.disable_auto_compactions = true;
  Open();
  for (int flush = 0; flush < 50; ++flush) {
    Put("key " + std::to_string(1000 + flush));
    ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  }
  // No other thread wakes the one that frees them: WaitUntilReconciled would.
  while (db_->filter().tree().figures().retired > 10) std::this_thread::yield();
}

}  // namespace
}  // namespace tamis::lsm
