// The ways of reading and writing that only some versions of RocksDB have, and the databases that a
// filter refuses: each answers as the database itself does (docs/LSM.md#versions-of-rocksdb).
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/utilities/transaction_db.h>
#include <rocksdb/utilities/write_batch_with_index.h>
#include <rocksdb/wide_columns.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tamis/lsm/faults.h"
#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/tree_filter.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::Status;

// Keys bytewise, each with a timestamp of 8 bytes, the latest first.
class WithTimestamps : public rocksdb::Comparator {
 public:
  WithTimestamps() : Comparator(8) {}
  const char* Name() const override { return "with.timestamps"; }
  int Compare(const Slice& a, const Slice& b) const override {
    const int order = CompareWithoutTimestamp(a, true, b, true);
    return order != 0 ? order : -CompareTimestamp(Timestamp(a), Timestamp(b));
  }
  int CompareWithoutTimestamp(const Slice& a, bool a_has, const Slice& b,
                              bool b_has) const override {
    return Key(a, a_has).compare(Key(b, b_has));
  }
  int CompareTimestamp(const Slice& a, const Slice& b) const override { return a.compare(b); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  static Slice Key(const Slice& key, bool has) { return {key.data(), key.size() - (has ? 8 : 0)}; }
  static Slice Timestamp(const Slice& key) { return {key.data() + key.size() - 8, 8}; }
};

// The last argument of DB::OpenAsSecondary differs by version, as that of DB::Open does.
template <class Db>
Status OpenSecondary(std::unique_ptr<Db>* db, const rocksdb::Options& options,
                     const std::string& path, const std::string& own) {
  if constexpr (requires { Db::OpenAsSecondary(options, path, own, db); }) {
    return Db::OpenAsSecondary(options, path, own, db);
  } else {
    Db* opened = nullptr;
    Status status = Db::OpenAsSecondary(options, path, own, &opened);
    db->reset(opened);
    return status;
  }
}

class ReadPathsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    options_.create_if_missing = true;
  }
  void TearDown() override {
    db_.reset();
    std::filesystem::remove_all(path_);
  }

  void Open() {
    auto db = FilteredDB::Open({}, options_, path_ + "/db");
    ASSERT_TRUE(db.ok()) << db.status();
    db_ = *std::move(db);
    db_->filter().WaitUntilCounted();
    family_ = db_->DefaultColumnFamily();
  }
  // A FilteredDB over a database that was opened with options to which the filter was attached.
  std::unique_ptr<FilteredDB> Over(rocksdb::DB* db, std::shared_ptr<DatabaseFilter> filter) {
    return std::make_unique<FilteredDB>(
        db, std::move(filter), std::vector<ColumnFamilyHandle*>{db->DefaultColumnFamily()});
  }

  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  // Keys 0 to 99: the first half in a file, the rest in the memtable; every second one has columns.
  void PutSome() {
    for (uint64_t i = 0; i < 100; ++i) {
      const Status status = i % 2 == 0 ? db_->Put({}, family_, Key(i), "v" + Key(i))
                                       : db_->PutEntity({}, family_, Key(i), {{"a", Key(i)}});
      ASSERT_TRUE(status.ok()) << status.ToString();
      if (i == 50) {
        ASSERT_TRUE(db_->Flush({}, family_).ok());
      }
    }
  }
  uint64_t excluded() const { return db_->filter().tree().figures().excluded; }

  const std::string path_ = testing::TempDir() + "read_paths_test." + std::to_string(getpid());
  rocksdb::Options options_;
  std::unique_ptr<FilteredDB> db_;
  ColumnFamilyHandle* family_ = nullptr;
};

TEST_F(ReadPathsTest, GetEntityIsFiltered) {
  Open();
  PutSome();
  for (uint64_t i = 0; i < 200; ++i) {
    rocksdb::PinnableWideColumns ours;
    rocksdb::PinnableWideColumns theirs;
    EXPECT_EQ(db_->GetEntity({}, family_, Key(i), &ours),
              db_->GetBaseDB()->GetEntity({}, family_, Key(i), &theirs));
    EXPECT_EQ(ours.columns(), theirs.columns()) << Key(i);
  }
  EXPECT_GT(excluded(), 90u);
}

TEST_F(ReadPathsTest, SecondaryInstancePassesThroughAndFollowsItsPrimary) {
  Open();
  ASSERT_TRUE(db_->Put({}, family_, Key(0), "v").ok());
  const auto filter = *DatabaseFilter::Create({.directory = path_ + "/keys"});
  rocksdb::Options options = options_;
  options.max_open_files = -1;
  filter->Attach(&options);
  std::unique_ptr<rocksdb::DB> opened;
  const Status status = OpenSecondary(&opened, options, path_ + "/db", path_ + "/second");
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto secondary = Over(opened.release(), filter);
  filter->WaitUntilCounted();
  for (uint64_t i = 1000; i < 1100; ++i) ASSERT_TRUE(db_->Put({}, family_, Key(i), "late").ok());
  ASSERT_TRUE(db_->Flush({}, family_).ok());
  ASSERT_TRUE(secondary->TryCatchUpWithPrimary().ok());
  std::string value;
  for (uint64_t i = 1000; i < 1100; ++i) {
    EXPECT_TRUE(secondary->Get({}, secondary->DefaultColumnFamily(), Key(i), &value).ok());
  }
  EXPECT_EQ(filter->BypassReasonsOf(secondary->DefaultColumnFamily()), "another process writes it");
}

TEST_F(ReadPathsTest, FamilyWithUserTimestampsPassesThrough) {
  static const WithTimestamps comparator;
  options_.comparator = &comparator;
  Open();
  const std::string early(8, '\1');
  const std::string late(8, '\2');
  ASSERT_TRUE(db_->Put({}, family_, "a", Slice(early), "v").ok());
  ASSERT_TRUE(db_->Flush({}, family_).ok());
  ASSERT_TRUE(db_->Put({}, family_, "b", Slice(late), "w").ok());
  rocksdb::ReadOptions read;
  const Slice now(late);
  read.timestamp = &now;
  std::string value;
  std::string timestamp;
  EXPECT_TRUE(db_->Get(read, family_, "a", &value).ok());
  EXPECT_TRUE(db_->Get(read, family_, "b", &value, &timestamp).ok());
  EXPECT_EQ(timestamp, late);
  const Slice before(early);
  read.timestamp = &before;
  EXPECT_TRUE(db_->Get(read, family_, "b", &value).IsNotFound());
  std::vector<std::string> timestamps;
  std::vector<std::string> values;
  read.timestamp = &now;
  const auto statuses = db_->MultiGet(read, {family_, family_}, {"a", "c"}, &values, &timestamps);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(statuses[1].IsNotFound());
  EXPECT_NE(db_->filter().BypassReasonsOf(family_).find("its keys carry timestamps"),
            std::string::npos);
}

#if TAMIS_ROCKSDB_HAS_ENTITIES

TEST_F(ReadPathsTest, MultiGetEntityIsFilteredInBothForms) {
  Open();
  PutSome();
  std::vector<std::string> names;
  for (uint64_t i = 0; i < 300; ++i) names.push_back(Key(i * 7 % 300));
  const std::vector<Slice> keys(names.begin(), names.end());
  const std::vector<ColumnFamilyHandle*> families(keys.size(), family_);
  for (const bool many : {false, true}) {
    const uint64_t before = excluded();
    std::vector<rocksdb::PinnableWideColumns> ours(keys.size());
    std::vector<rocksdb::PinnableWideColumns> theirs(keys.size());
    std::vector<Status> our_statuses(keys.size());
    std::vector<Status> their_statuses(keys.size());
    const auto ask = [&](rocksdb::DB* db, auto& columns, auto& statuses) {
      if (many) {
        auto copy = families;
        db->MultiGetEntity({}, keys.size(), copy.data(), keys.data(), columns.data(),
                           statuses.data());
      } else {
        db->MultiGetEntity({}, family_, keys.size(), keys.data(), columns.data(), statuses.data());
      }
    };
    ask(db_.get(), ours, our_statuses);
    ask(db_->GetBaseDB(), theirs, their_statuses);
    EXPECT_EQ(our_statuses, their_statuses);
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(ours[i].columns(), theirs[i].columns()) << names[i];
    }
    EXPECT_GT(excluded() - before, 190u);
  }
}

#endif

#if TAMIS_ROCKSDB_HAS_ATTRIBUTE_GROUPS

TEST_F(ReadPathsTest, AttributeGroupsAreReadAsTheDatabaseReadsThem) {
  Open();
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily({}, "other", &other).ok());
  PutSome();
  for (uint64_t i = 0; i < 100; i += 3) {
    ASSERT_TRUE(db_->PutEntity({}, other, Key(i), {{"b", Key(i)}}).ok());
  }
  constexpr uint64_t kKeys = 150;
  const auto expect_equal = [](const auto& ours, const auto& theirs) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].status(), theirs[i].status()) << ours[i].status().ToString();
      EXPECT_EQ(ours[i].columns(), theirs[i].columns());
    }
  };
  const auto fresh = [&] {  // groups cannot be copied
    rocksdb::PinnableAttributeGroups groups;
    groups.emplace_back(family_);
    groups.emplace_back(other);
    return groups;
  };
  std::vector<std::string> names;
  std::vector<rocksdb::PinnableAttributeGroups> our_groups;
  std::vector<rocksdb::PinnableAttributeGroups> their_groups;
  uint64_t found = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    names.push_back(Key(i));
    our_groups.push_back(fresh());
    their_groups.push_back(fresh());
    auto ours = fresh();
    auto theirs = fresh();
    EXPECT_EQ(db_->GetEntity({}, Key(i), &ours), db_->GetBaseDB()->GetEntity({}, Key(i), &theirs));
    expect_equal(ours, theirs);
    found += ours[0].status().ok() ? 1 : 0;
  }
  EXPECT_EQ(found, 100u);
  const std::vector<Slice> keys(names.begin(), names.end());
  db_->MultiGetEntity({}, keys.size(), keys.data(), our_groups.data());
  db_->GetBaseDB()->MultiGetEntity({}, keys.size(), keys.data(), their_groups.data());
  for (uint64_t i = 0; i < kKeys; ++i) expect_equal(our_groups[i], their_groups[i]);
  EXPECT_TRUE(our_groups[99][1].status().ok());
  ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
}

#endif

#if TAMIS_ROCKSDB_SINCE(10, 4)

TEST_F(ReadPathsTest, SeveralRangesAreScannedByOneIterator) {
  Open();
  PutSome();
  const auto scan = [&](rocksdb::DB* db) {
    std::vector<std::string> keys;
#if TAMIS_ROCKSDB_SINCE(11, 0)
    rocksdb::MultiScanArgs ranges(rocksdb::BytewiseComparator());
    ranges.insert("key2", "key3");
    ranges.insert("key70", "key75");
#else
    const std::vector<rocksdb::ScanOptions> ranges = {{"key2", "key3"}, {"key70", "key75"}};
#endif
    const auto scans = db->NewMultiScan({}, family_, ranges);
    for (auto range : *scans) {
      for (const auto& row : range) keys.push_back(row.first.ToString());
    }
    return keys;
  };
  const auto keys = scan(db_.get());
  EXPECT_FALSE(keys.empty());
  EXPECT_EQ(keys, scan(db_->GetBaseDB()));
}

#endif

#if TAMIS_ROCKSDB_SINCE(11, 8)

TEST_F(ReadPathsTest, FilterAnswersAsynchronousGetsOfAbsentKeys) {
  class Completed : public rocksdb::DB::AsyncCallback {
   public:
    void OnComplete(const rocksdb::PerfContext*, const rocksdb::IOStatsContext*) override {
      done = true;
    }
    bool done = false;
  };
  Open();
  PutSome();
  for (uint64_t i = 0; i < 200; ++i) {
    rocksdb::PinnableSlice value;
    Status status;
    Completed completed;
    db_->GetAsync({}, family_, Key(i), &value, status, completed);
    ASSERT_TRUE(completed.done);
    EXPECT_EQ(status.ok(), i < 100) << Key(i);
    EXPECT_EQ(status.IsNotFound(), i >= 100) << Key(i);
  }
  EXPECT_GT(excluded(), 90u);
  const uint64_t before = excluded();
  std::vector<std::string> names;
  for (uint64_t i = 0; i < 200; ++i) names.push_back(Key(i));
  const std::vector<Slice> keys(names.begin(), names.end());
  std::vector<ColumnFamilyHandle*> families(keys.size(), family_);
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  Completed completed;
  db_->MultiGetAsync({}, keys.size(), families.data(), keys.data(), values.data(), statuses.data(),
                     false, completed);
  ASSERT_TRUE(completed.done);
  for (uint64_t i = 0; i < 200; ++i) EXPECT_EQ(statuses[i].ok(), i < 100) << Key(i);
  EXPECT_GT(excluded() - before, 90u);
}

#endif

#if TAMIS_ROCKSDB_SINCE(8, 7)

TEST_F(ReadPathsTest, IteratorRefreshedWithASnapshotSeesWhatThatSaw) {
  Open();
  PutSome();
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(db_->Delete({}, family_, Key(i)).ok());
  const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator({}, family_));
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  ASSERT_TRUE(iterator->Refresh(snapshot).ok());
  int count = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
  EXPECT_EQ(count, 100);
  db_->ReleaseSnapshot(snapshot);
}

#endif

#if TAMIS_ROCKSDB_SINCE(9, 4)

TEST_F(ReadPathsTest, FollowerPassesThrough) {
  Open();
  PutSome();
  ASSERT_TRUE(db_->Flush({}, family_).ok());
  const auto filter = *DatabaseFilter::Create({.directory = path_ + "/keys"});
  rocksdb::Options options = options_;
  options.max_open_files = -1;
  filter->Attach(&options);
  std::unique_ptr<rocksdb::DB> opened;
  const Status status =
      rocksdb::DB::OpenAsFollower(options, path_ + "/follower", path_ + "/db", &opened);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto follower = Over(opened.release(), filter);
  filter->WaitUntilCounted();
  std::string value;
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(follower->Get({}, follower->DefaultColumnFamily(), Key(i), &value),
              db_->GetBaseDB()->Get({}, family_, Key(i), &value));
  }
  EXPECT_EQ(filter->BypassReasonsOf(follower->DefaultColumnFamily()), "another process writes it");
}

#endif

#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES

// The keys of such a commit are in no memtable that a factory made.
class BypassTest : public ReadPathsTest {
 protected:
  // How many of the committed keys are missed before they are flushed.
  uint64_t Missed(bool ignore_bypass) {
    Faults faults;
    faults.ignore_bypass = ignore_bypass;
    const auto filter = *DatabaseFilter::Create(
        {.directory = path_ + "/keys", .faults = std::make_shared<const Faults>(faults)});
    rocksdb::Options options = options_;
    options.max_write_buffer_number = 8;
    filter->Attach(&options);
    rocksdb::TransactionDB* transactions = nullptr;
    EXPECT_TRUE(rocksdb::TransactionDB::Open(options, {}, path_ + "/db", &transactions).ok());
    const auto db = Over(transactions, filter);
    ColumnFamilyHandle* const family = db->DefaultColumnFamily();
    filter->WaitUntilCounted();
    EXPECT_TRUE(db->Put({}, family, "before", "v").ok());
    // No flush while the keys are asked for.
    EXPECT_TRUE(db->PauseBackgroundWork().ok());
    rocksdb::TransactionOptions how;
    how.commit_bypass_memtable = true;
    const std::unique_ptr<rocksdb::Transaction> batch(transactions->BeginTransaction({}, how));
    for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(batch->Put(Key(i), "v").ok());
    EXPECT_TRUE(batch->SetName("batch").ok());
    EXPECT_TRUE(batch->Prepare().ok());
    EXPECT_EQ(filter->BypassReasonsOf(family), "");
    EXPECT_TRUE(batch->Commit().ok());
    uint64_t missed = 0;
    std::string value;
    for (uint64_t i = 0; i < 100; ++i) missed += !db->Get({}, family, Key(i), &value).ok();
    EXPECT_EQ(filter->BypassReasonsOf(family),
              ignore_bypass ? "" : "a batch bypassed its memtables");
    EXPECT_TRUE(db->ContinueBackgroundWork().ok());
    EXPECT_TRUE(db->Flush({}, family).ok());
    filter->WaitUntilReconciled();
    // The event comes after Flush has returned.
    while (!filter->BypassReasonsOf(family).empty()) std::this_thread::yield();
    for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(db->Get({}, family, Key(i), &value).ok());
    EXPECT_TRUE(db->Get({}, family, "absent", &value).IsNotFound());
    EXPECT_GT(filter->tree().figures().excluded, 0u);
    return missed;
  }
};

TEST_F(BypassTest, CommitThatBypassesMemtablesIsFoundAtOnce) { EXPECT_EQ(Missed(false), 0u); }

TEST_F(BypassTest, WithoutTheRuleItsKeysAreMissed) { EXPECT_GT(Missed(true), 90u); }

TEST_F(BypassTest, OrdinaryFlushesMakeNothingPassThrough) {
  Open();
  for (uint64_t flush = 0; flush < 20; ++flush) {
    for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(db_->Put({}, family_, Key(i), "v").ok());
    rocksdb::FlushOptions without_waiting;
    without_waiting.wait = false;
    without_waiting.allow_write_stall = true;
    (void)db_->Flush(without_waiting, family_);
    EXPECT_EQ(db_->filter().BypassReasonsOf(family_), "");
  }
}

TEST_F(BypassTest, BatchThatIsIngestedAsAMemtableIsRefusedByTheWrapperAndFoundOnTheBase) {
  Open();
  const auto batch = std::make_shared<rocksdb::WriteBatchWithIndex>(rocksdb::BytewiseComparator(),
                                                                    0, /*overwrite_key=*/true);
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(batch->Put(family_, Key(i), "v").ok());
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  EXPECT_TRUE(db_->IngestWriteBatchWithIndex(write, batch).IsNotSupported());
  const Status status = db_->GetBaseDB()->IngestWriteBatchWithIndex(write, batch);
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::string value;
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(db_->Get({}, family_, Key(i), &value).ok());
}

#endif

#if TAMIS_ROCKSDB_INGESTS_IN_TWO_STEPS

TEST_F(ReadPathsTest, IngestionInTwoStepsIsRefused) {
  Open();
  std::unique_ptr<rocksdb::FileIngestionHandle> handle;
  rocksdb::IngestExternalFileArg files;
  files.column_family = family_;
  files.external_files = {path_ + "/none.sst"};
  EXPECT_TRUE(db_->PrepareFileIngestion({files}, &handle).IsNotSupported());
  EXPECT_TRUE(
      db_->PrepareFileIngestion(family_, {path_ + "/none.sst"}, {}, &handle).IsNotSupported());
}

#endif

}  // namespace
}  // namespace tamis::lsm
