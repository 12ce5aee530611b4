#include "tamis/lsm/database_filter.h"

#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/sst_keys.h"
#include "tamis/lsm/tree_filter.h"

namespace tamis::lsm {
namespace {

using rocksdb::ColumnFamilyHandle;

class DatabaseFilterTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "database_filter_test." + std::to_string(getpid());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    options_.create_if_missing = true;
    options_.disable_auto_compactions = true;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // Families by name; the first handle is the default one's.
  void Open(const std::vector<std::string>& families = {}) {
    std::vector<rocksdb::ColumnFamilyDescriptor> all = {
        {rocksdb::kDefaultColumnFamilyName, options_}};
    for (const std::string& name : families) all.emplace_back(name, options_);
    filter_ = *DatabaseFilter::Create({.directory = path_ + "/keys", .env = options_.env});
    rocksdb::DBOptions db_options(options_);
    filter_->Attach(&db_options, &all);
    const auto opened = OpenDatabase(&db_, db_options, path_ + "/db", all, &handles_);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
  }
  void Start() {
    filter_->Start(db_.get(), handles_);
    filter_->WaitUntilCounted();
  }
  void Close() {
    filter_->Stop();
    for (ColumnFamilyHandle* handle : handles_) (void)db_->DestroyColumnFamilyHandle(handle);
    handles_.clear();
    db_.reset();
    filter_.reset();
  }

  std::string MakeSst(const std::string& name, const std::vector<std::string>& keys) {
    const std::string path = path_ + "/" + name;
    rocksdb::SstFileWriter writer({}, options_);
    EXPECT_TRUE(writer.Open(path).ok());
    for (const std::string& key : keys) EXPECT_TRUE(writer.Put(key, "v").ok());
    EXPECT_TRUE(writer.Finish().ok());
    return path;
  }

  rocksdb::Options options_;
  std::string path_;
  std::shared_ptr<DatabaseFilter> filter_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<ColumnFamilyHandle*> handles_;
};

TEST_F(DatabaseFilterTest, AFamilyThatIsShownLateIsCountedBeforeItIsBelieved) {
  Open();
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other).ok());
  handles_.push_back(other);
  ASSERT_TRUE(db_->Put({}, other, "a", "v").ok());
  ASSERT_TRUE(db_->Flush({}, other).ok());
  Close();
  std::filesystem::remove_all(path_ + "/keys");
  Open({"other"});
  filter_->Start(db_.get(), {handles_[0]});
  filter_->WaitUntilCounted();
  EXPECT_TRUE(filter_->MayContain(handles_[1], "a"));
  filter_->Show(handles_[1]);
  EXPECT_TRUE(filter_->MayContain(handles_[1], "a"));
  filter_->WaitUntilReconciled();
  EXPECT_EQ(filter_->BypassReasonsOf(handles_[1]), "");
  EXPECT_TRUE(filter_->MayContain(handles_[1], "a"));
  EXPECT_FALSE(filter_->MayContain(handles_[1], "b"));
  Close();
}

// Files of the second one were found under the name, and taken for those of the first.
TEST_F(DatabaseFilterTest, ANameThatComesAgainIsAnotherFamily) {
  Open();
  Start();
  rocksdb::ColumnFamilyOptions attached = options_;
  filter_->Attach(&attached);
  ColumnFamilyHandle* first = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(attached, "other", &first).ok());
  filter_->Show(first);
  ASSERT_TRUE(db_->DropColumnFamily(first).ok());
  ColumnFamilyHandle* second = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(attached, "other", &second).ok());
  ASSERT_TRUE(db_->IngestExternalFile(second, {MakeSst("in.sst", {"a"})}, {}).ok());
  filter_->WaitUntilReconciled();
  filter_->Show(second);
  EXPECT_TRUE(filter_->MayContain(second, "a"));
  filter_->WaitUntilReconciled();
  EXPECT_TRUE(filter_->MayContain(second, "a"));
  EXPECT_EQ(filter_->BypassReasonsOf(second), "");
  EXPECT_FALSE(filter_->MayContain(second, "b"));
  handles_.push_back(first);
  handles_.push_back(second);
  Close();
}

TEST_F(DatabaseFilterTest, FileThatCannotBeCountedDelaysNoOtherFile) {
  Open();
  Start();
  ColumnFamilyHandle* hidden = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "hidden", &hidden).ok());
  ASSERT_TRUE(db_->IngestExternalFile(hidden, {MakeSst("in.sst", {"a"})}, {}).ok());
  for (const char* key : {"a", "b"}) {
    ASSERT_TRUE(db_->Put({}, handles_[0], key, "v").ok());
    ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  }
  ASSERT_TRUE(db_->CompactRange({}, handles_[0], nullptr, nullptr).ok());
  filter_->WaitUntilReconciled();
  EXPECT_EQ(filter_->tree().figures().unreconciled, 0u);
  EXPECT_TRUE(filter_->tree().IsExact());
  handles_.push_back(hidden);
  Close();
}

TEST_F(DatabaseFilterTest, OneFileMayBeIngestedIntoTwoFamilies) {
  Open();
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other).ok());
  handles_.push_back(other);
  Close();
  Open({"other"});
  FilteredDB db(db_.release(), filter_, handles_);
  filter_->WaitUntilCounted();
  const std::string file = MakeSst("in.sst", {"a", "b"});
  rocksdb::IngestExternalFileArg into[2];
  for (int i = 0; i < 2; ++i) {
    into[i].column_family = handles_[i];
    into[i].external_files = {file};
    into[i].options.failed_move_fall_back_to_copy = true;
  }
  ASSERT_TRUE(db.IngestExternalFiles({into[0], into[1]}).ok());
  for (ColumnFamilyHandle* handle : handles_) EXPECT_EQ(filter_->BypassReasonsOf(handle), "");
  filter_->WaitUntilReconciled();
  std::string value;
  for (ColumnFamilyHandle* handle : handles_) {
    EXPECT_EQ(filter_->BypassReasonsOf(handle), "");
    EXPECT_TRUE(db.Get({}, handle, "a", &value).ok());
    EXPECT_FALSE(filter_->MayContain(handle, "c"));
    EXPECT_TRUE(db.DestroyColumnFamilyHandle(handle).ok());
  }
  handles_.clear();
  EXPECT_TRUE(filter_->tree().IsExact());
}

// A deletion that is prepared and not decided hides nothing, but in a file that is read back.
TEST_F(DatabaseFilterTest, KeyDeletedByAPreparedTransactionIsThereAfterACrash) {
  rocksdb::TransactionDBOptions transactions;
  transactions.write_policy = rocksdb::WRITE_PREPARED;
  for (const bool again : {false, true}) {
    const auto filter = *DatabaseFilter::Create({.directory = path_ + (again ? "/new" : "/old")});
    rocksdb::Options options = options_;
    filter->Attach(&options);
    rocksdb::TransactionDB* opened = nullptr;
    ASSERT_TRUE(rocksdb::TransactionDB::Open(options, transactions,
                                             path_ + (again ? "/crashed" : "/db"), &opened)
                    .ok());
    FilteredDB db(opened, filter, {opened->DefaultColumnFamily()});
    filter->WaitUntilCounted();
    if (!again) {
      ASSERT_TRUE(db.Put({}, "a", "v").ok());
      ASSERT_TRUE(db.Flush({}).ok());
      rocksdb::Transaction* const deletion = opened->BeginTransaction({});
      ASSERT_TRUE(deletion->SetName("deletion").ok());
      ASSERT_TRUE(deletion->Delete("a").ok());
      ASSERT_TRUE(deletion->Prepare().ok());
      ASSERT_TRUE(db.Flush({}).ok());
      ASSERT_TRUE(db.CompactRange({}, nullptr, nullptr).ok());
      rocksdb::Checkpoint* made = nullptr;
      ASSERT_TRUE(rocksdb::Checkpoint::Create(opened, &made).ok());
      const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
      ASSERT_TRUE(checkpoint->CreateCheckpoint(path_ + "/crashed").ok());
    }
    std::string value;
    EXPECT_TRUE(db.GetBaseDB()->Get({}, "a", &value).ok());
    EXPECT_TRUE(db.Get({}, "a", &value).ok());
    EXPECT_TRUE(db.Get({}, "b", &value).IsNotFound());
    EXPECT_EQ(filter->BypassReasonsOf(db.DefaultColumnFamily()), "");
    rocksdb::Transaction* const prepared = opened->GetTransactionByName("deletion");
    ASSERT_NE(prepared, nullptr);
    EXPECT_TRUE(prepared->Rollback().ok());
    delete prepared;
  }
}

// A file system whose held files only the thread that made it can open.
class HeldFileSystem : public rocksdb::FileSystemWrapper {
 public:
  HeldFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "HeldFileSystem"; }

  void Hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    let_go_.notify_all();
  }

  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    if (std::this_thread::get_id() != maker_) {
      std::unique_lock lock(mutex_);
      let_go_.wait(lock, [this] { return !held_; });
    }
    return FileSystemWrapper::NewRandomAccessFile(name, options, file, debug);
  }

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable let_go_;
  bool held_ = false;
};

// A dropped family can be read as long as there is a handle.
class DroppedFamilyTest : public DatabaseFilterTest {
 protected:
  void SetUp() override {
    DatabaseFilterTest::SetUp();
    options_.env = env_.get();
    Open();
    Start();
    ColumnFamilyHandle* source = nullptr;
    ASSERT_TRUE(db_->CreateColumnFamily(options_, "source", &source).ok());
    ASSERT_TRUE(db_->Put({}, source, "a", "v").ok());
    rocksdb::Checkpoint* made = nullptr;
    ASSERT_TRUE(rocksdb::Checkpoint::Create(db_.get(), &made).ok());
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    rocksdb::ExportImportFilesMetaData* metadata = nullptr;
    ASSERT_TRUE(checkpoint->ExportColumnFamily(source, path_ + "/exported", &metadata).ok());
    metadata_.reset(metadata);
    handles_.push_back(source);
    filter_->WaitUntilReconciled();
    disk_->Hold(true);
  }

  ColumnFamilyHandle* Import() {
    rocksdb::ColumnFamilyOptions attached = options_;
    filter_->Attach(&attached);
    ColumnFamilyHandle* made = nullptr;
    const auto imported =
        db_->CreateColumnFamilyWithImport(attached, "imported", {}, *metadata_, &made);
    EXPECT_TRUE(imported.ok()) << imported.ToString();
    filter_->Show(made);
    handles_.push_back(made);
    return made;
  }
  // The counting goes on, and the dropped family is not denied what it still holds.
  void LetGo(ColumnFamilyHandle* dropped) {
    disk_->Hold(false);
    filter_->WaitUntilReconciled();
    std::string value;
    EXPECT_TRUE(db_->Get({}, dropped, "a", &value).ok());
    EXPECT_TRUE(filter_->MayContain(dropped, "a"));
  }
  void ExpectCounted(ColumnFamilyHandle* family) {
    EXPECT_TRUE(filter_->MayContain(family, "a"));
    EXPECT_EQ(filter_->BypassReasonsOf(family), "");
    EXPECT_FALSE(filter_->MayContain(family, "b"));
  }

  std::shared_ptr<HeldFileSystem> disk_ = std::make_shared<HeldFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(disk_);
  std::unique_ptr<rocksdb::ExportImportFilesMetaData> metadata_;
};

TEST_F(DroppedFamilyTest, FilesImportedBeforeItsDropAreCounted) {
  ColumnFamilyHandle* const family = Import();
  ASSERT_TRUE(db_->DropColumnFamily(family).ok());
  LetGo(family);
  ExpectCounted(family);
  Close();
}

// The owner of the files of that name cannot be known any more.
TEST_F(DroppedFamilyTest, PassesThroughOnceAnotherFamilyHasItsName) {
  ColumnFamilyHandle* const first = Import();
  ASSERT_TRUE(db_->DropColumnFamily(first).ok());
  ColumnFamilyHandle* const second = Import();
  LetGo(first);
  EXPECT_EQ(filter_->BypassReasonsOf(first), "it was dropped, and its name is another one's");
  ExpectCounted(second);
  Close();
}

// RocksDB's own iterator would end the process.
TEST_F(DatabaseFilterTest, FilesInAnotherOrderAreNotRead) {
  options_.create_missing_column_families = true;
  options_.comparator = rocksdb::ReverseBytewiseComparator();
  Open({"other"});
  for (ColumnFamilyHandle* handle : handles_) {
    for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(db_->Put({}, handle, key, "v").ok());
    ASSERT_TRUE(db_->Flush({}, handle).ok());
  }
  std::vector<rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_FALSE(ReadSst(db_->GetEnv(), files[0].db_path + files[0].name, [](auto) {}).ok());
  Close();
  std::filesystem::remove_all(path_ + "/keys");
  Open({"other"});
  Start();
  for (ColumnFamilyHandle* handle : handles_) {
    EXPECT_TRUE(filter_->MayContain(handle, "b"));
    EXPECT_EQ(filter_->BypassReasonsOf(handle), "its comparator is not bytewise");
  }
  EXPECT_EQ(filter_->Metrics().at("counting"), 0u);
  // A file that comes in is not read either.
  const std::string external = MakeSst("external", {"z", "y", "x"});
  {
    const auto counted = filter_->BeginIngestion(handles_[1]->GetID(), {external});
    ASSERT_TRUE(db_->IngestExternalFile(handles_[1], {external}, {}).ok());
  }
  filter_->WaitUntilReconciled();
  EXPECT_TRUE(filter_->MayContain(handles_[1], "y"));
  std::string value;
  EXPECT_TRUE(db_->Get({}, handles_[1], "y", &value).ok());
  Close();
}

TEST_F(DatabaseFilterTest, ASnapshotSeesWhatWasImportedUnderATombstone) {
  Open();
  Start();
  ASSERT_TRUE(db_->Put({}, handles_[0], "a", "v").ok());
  const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_TRUE(db_->Delete({}, handles_[0], "a").ok());
  ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  std::vector<rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  ASSERT_EQ(files.size(), 1u);
  int seen = 0;
  ASSERT_TRUE(ReadSst(db_->GetEnv(), files[0].db_path + files[0].name, [&](std::string_view key) {
                seen += key == "a";
              }).ok());
  EXPECT_GE(seen, 1);
  db_->ReleaseSnapshot(snapshot);
  Close();
}

// A filter that is not attached to all of the options of its database.
class PartlyAttachedTest : public DatabaseFilterTest {
 protected:
  // Opens with options that were attached, and then changed by `change`.
  void OpenChanged(
      const std::function<void(rocksdb::DBOptions*, rocksdb::ColumnFamilyOptions*)>& change) {
    filter_ = *DatabaseFilter::Create({.directory = path_ + "/keys"});
    rocksdb::DBOptions db_options(options_);
    rocksdb::ColumnFamilyOptions family_options(options_);
    filter_->Attach(&db_options, &none_);
    filter_->Attach(&family_options);
    change(&db_options, &family_options);
    const auto opened = OpenDatabase(
        &db_, db_options, path_ + "/db",
        std::vector<rocksdb::ColumnFamilyDescriptor>{{"default", family_options}}, &handles_);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
  }
  // Every key stays there, in the memtable and in files, and the state says why.
  void ExpectPassesThrough(ColumnFamilyHandle* family, const std::string& reasons) {
    EXPECT_EQ(filter_->BypassReasonsOf(family), reasons);
    for (int i = 0; i < 3; ++i) {
      const std::string key = "late" + std::to_string(i);
      ASSERT_TRUE(db_->Put({}, family, key, "v").ok());
      EXPECT_TRUE(filter_->MayContain(family, key));
      ASSERT_TRUE(db_->Flush({}, family).ok());
      EXPECT_TRUE(filter_->MayContain(family, key));
    }
    ASSERT_TRUE(db_->CompactRange({}, family, nullptr, nullptr).ok());
    filter_->WaitUntilReconciled();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(filter_->MayContain(family, "late" + std::to_string(i)));
    }
  }

  std::vector<rocksdb::ColumnFamilyDescriptor> none_;
};

constexpr char kHearsNoEvents[] =
    "the filter hears no events: the database's options lack its listener";
constexpr char kCollectsNoKeys[] =
    "the keys of its files are not collected: its options lack the filter's collector";

TEST_F(PartlyAttachedTest, WithoutTheListenerEveryKeyPassesThrough) {
  OpenChanged([](auto* db_options, auto*) { db_options->listeners.clear(); });
  ASSERT_TRUE(db_->Put({}, handles_[0], "early", "v").ok());
  ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  EXPECT_TRUE(filter_->MayContain(handles_[0], "early"));
  Start();
  ExpectPassesThrough(handles_[0], kHearsNoEvents);
  // Nor is a family that comes later believed.
  rocksdb::ColumnFamilyOptions attached = options_;
  filter_->Attach(&attached);
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(attached, "other", &other).ok());
  handles_.push_back(other);
  filter_->Show(other);
  ExpectPassesThrough(other, kHearsNoEvents);
  Close();
}

TEST_F(PartlyAttachedTest, ListenerOfAnotherFilterDoesNotCount) {
  const auto stranger = *DatabaseFilter::Create({.directory = path_ + "/strange"});
  OpenChanged([&](auto* db_options, auto*) {
    db_options->listeners.clear();
    stranger->Attach(db_options, &none_);
  });
  Start();
  ExpectPassesThrough(handles_[0], kHearsNoEvents);
  Close();
}

TEST_F(PartlyAttachedTest, WithOtherMemtablesEveryKeyPassesThrough) {
  // The other database has a family of the same id, whose memtables are watched.
  std::unique_ptr<rocksdb::DB> other;
  OpenChanged([&](auto* db_options, auto* family_options) {
    rocksdb::Options both(*db_options, *family_options);
    ASSERT_TRUE(OpenDatabase(&other, both, path_ + "/other").ok());
    family_options->memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
  });
  Start();
  ExpectPassesThrough(handles_[0], "its memtables are not watched");
  ASSERT_TRUE(other->Put({}, "a", "v").ok());
  ASSERT_TRUE(other->Flush({}).ok());
  ExpectPassesThrough(handles_[0], "its memtables are not watched");
  other.reset();
  Close();
}

TEST_F(PartlyAttachedTest, WithoutTheCollectorEveryKeyPassesThrough) {
  OpenChanged([](auto*, auto* family_options) {
    family_options->table_properties_collector_factories.clear();
  });
  Start();
  EXPECT_EQ(filter_->BypassReasonsOf(handles_[0]), kCollectsNoKeys);
  ASSERT_TRUE(db_->Put({}, handles_[0], "a", "v").ok());
  ASSERT_TRUE(db_->Flush({}, handles_[0]).ok());
  EXPECT_TRUE(filter_->MayContain(handles_[0], "a"));
  Close();
}

TEST_F(PartlyAttachedTest, AFamilyThatComesLaterWithOptionsOfItsOwnPassesThrough) {
  Open();
  Start();
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other).ok());
  handles_.push_back(other);
  filter_->Show(other);
  EXPECT_EQ(filter_->BypassReasonsOf(other),
            std::string("its memtables are not watched, ") + kCollectsNoKeys);
  EXPECT_EQ(filter_->BypassReasonsOf(handles_[0]), "");
  // The hooks cannot be replaced while the database is open.
  EXPECT_FALSE(db_->SetOptions(handles_[0], {{"memtable_factory", "skip_list"}}).ok());
  EXPECT_FALSE(db_->SetOptions(handles_[0], {{"table_properties_collector_factories", "{}"}}).ok());
  Close();
}

TEST_F(PartlyAttachedTest, OptionsWhoseMemtablesWereReplacedCanBeAttachedAgain) {
  OpenChanged([&](auto*, auto* family_options) {
    family_options->memtable_factory = std::make_shared<rocksdb::SkipListFactory>();
    filter_->Attach(family_options);
    EXPECT_EQ(family_options->table_properties_collector_factories.size(), 1u);
  });
  Start();
  EXPECT_EQ(filter_->BypassReasonsOf(handles_[0]), "");
  ASSERT_TRUE(db_->Put({}, handles_[0], "a", "v").ok());
  EXPECT_TRUE(filter_->MayContain(handles_[0], "a"));
  EXPECT_FALSE(filter_->MayContain(handles_[0], "b"));
  Close();
}

// The numbers of the files of both are the same, and the filter learns with Start which is its own.
TEST_F(DatabaseFilterTest, AnotherDatabaseOpenedBeforeStartDisturbsNothing) {
  constexpr int kFiles = 12;
  constexpr int kKeys = 50;
  const auto fill = [&](const std::string& path, const std::string& prefix, int files) {
    std::unique_ptr<rocksdb::DB> db;
    ASSERT_TRUE(OpenDatabase(&db, options_, path).ok());
    for (int file = 0; file <= files; ++file) {
      for (int i = 0; i < kKeys; ++i) {
        const std::string key = prefix + std::to_string(file) + "/" + std::to_string(i);
        ASSERT_TRUE(db->Put({}, key, "v").ok());
      }
      if (file < files) {
        ASSERT_TRUE(db->Flush({}).ok());
      }
    }
  };
  for (const bool is_closed : {false, true}) {
    for (int files = 2; files < 6; ++files) {
      std::filesystem::remove_all(path_);
      std::filesystem::create_directories(path_);
      // The file of the recovery between them makes its later numbers even, as that of the other
      // one's recovery is.
      fill(path_ + "/db", "a", 1);
      fill(path_ + "/db", "c", kFiles);
      fill(path_ + "/other", "b", files);
      filter_ = *DatabaseFilter::Create({.directory = path_ + "/keys"});
      rocksdb::Options attached = options_;
      filter_->Attach(&attached);
      std::unique_ptr<rocksdb::DB> other;
      ASSERT_TRUE(OpenDatabase(&other, attached, path_ + "/other").ok());
      ASSERT_TRUE(OpenDatabase(&db_, attached, path_ + "/db").ok());
      // Deletes files of numbers that this one has, too.
      ASSERT_TRUE(other->CompactRange({}, nullptr, nullptr).ok());
      if (is_closed) other.reset();
      filter_->Start(db_.get(), {db_->DefaultColumnFamily()});
      filter_->WaitUntilCounted();
      filter_->WaitUntilReconciled();
      EXPECT_EQ(filter_->BypassReasonsOf(db_->DefaultColumnFamily()), "");
      int missed = 0;
      std::unique_ptr<rocksdb::Iterator> keys(db_->NewIterator({}));
      for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
        missed += !filter_->MayContain(db_->DefaultColumnFamily(), keys->key());
      }
      keys.reset();
      EXPECT_EQ(missed, 0) << files << " files in the other one, closed: " << is_closed;
      EXPECT_FALSE(filter_->MayContain(db_->DefaultColumnFamily(), "absent"));
      EXPECT_TRUE(filter_->tree().IsExact());
      other.reset();
      Close();
    }
  }
}

// Holds flushes after their files are written, before they are installed. It hears of an event
// after the listeners that were attached before it.
class HeldFlushes : public rocksdb::EventListener {
 public:
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo&) override {
    std::unique_lock lock(mutex_);
    is_held_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return may_go_; });
  }
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override {
    const std::lock_guard lock(mutex_);
    is_completed_ = true;
    changed_.notify_all();
  }
  void WaitUntilCompleted() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_completed_; });
  }
  void WaitUntilHeld() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_held_; });
  }
  void LetGo() {
    const std::lock_guard lock(mutex_);
    may_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;
  bool may_go_ = false;
  bool is_completed_ = false;
};

TEST_F(PartlyAttachedTest, AFileThatIsFlushedDuringStartIsCounted) {
  const auto flushes = std::make_shared<HeldFlushes>();
  OpenChanged([&](auto* db_options, auto*) { db_options->listeners.push_back(flushes); });
  ASSERT_TRUE(db_->Put({}, handles_[0], "a", "v").ok());
  rocksdb::FlushOptions in_background;
  in_background.wait = false;
  ASSERT_TRUE(db_->Flush(in_background, handles_[0]).ok());
  flushes->WaitUntilHeld();
  Start();
  EXPECT_TRUE(filter_->MayContain(handles_[0], "a"));
  EXPECT_EQ(filter_->BypassReasonsOf(handles_[0]), "files are coming in");
  flushes->LetGo();
  flushes->WaitUntilCompleted();
  EXPECT_TRUE(filter_->MayContain(handles_[0], "a"));
  filter_->WaitUntilReconciled();
  EXPECT_EQ(filter_->BypassReasonsOf(handles_[0]), "");
  EXPECT_TRUE(filter_->MayContain(handles_[0], "a"));
  EXPECT_FALSE(filter_->MayContain(handles_[0], "b"));
  EXPECT_TRUE(filter_->tree().IsExact());
  Close();
}

TEST_F(DatabaseFilterTest, IsForOneOpening) {
  Open();
  Start();
  ASSERT_TRUE(db_->Put({}, handles_[0], "a", "v").ok());
  EXPECT_THROW(filter_->Start(db_.get(), handles_), CannotStart);
  EXPECT_EQ(filter_->BypassReasonsOf(handles_[0]), "");
  EXPECT_FALSE(filter_->MayContain(handles_[0], "b"));
  const auto filter = filter_;
  Close();
  // Another opening writes what the filter does not see; so does a plain one.
  for (const bool is_attached : {false, true}) {
    rocksdb::Options options = options_;
    if (is_attached) filter->Attach(&options);
    ASSERT_TRUE(OpenDatabase(&db_, options, path_ + "/db").ok());
    ColumnFamilyHandle* const family = db_->DefaultColumnFamily();
    EXPECT_THROW(filter->Start(db_.get(), {family}), CannotStart);
    filter->Show(family);
    ASSERT_TRUE(db_->Put({}, "b", "v").ok());
    ASSERT_TRUE(db_->Flush({}).ok());
    for (const char* key : {"a", "b"}) EXPECT_TRUE(filter->MayContain(family, key));
    EXPECT_NE(filter->BypassReasonsOf(family).find("the filter was stopped"), std::string::npos);
    db_.reset();
  }
}

}  // namespace
}  // namespace tamis::lsm
