// A lack of memory in code that RocksDB calls, and in our own thread: no key is denied that may be
// there, no exception reaches RocksDB, and the process lives on.
#include <gtest/gtest.h>
#include <rocksdb/c.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/stackable_db.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/testing/failing_allocations.h"
#include "tamis/lsm.h"
#include "tamis/lsm/database_filter.h"
#include "tamis/lsm/hooks.h"
#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/sorted_hashes.h"

namespace tamis::lsm {
namespace {

class LackOfMemoryTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(path_); }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // run(turn, only_one) -> how many have failed: for a lack that begins with each allocation in
  // turn, of one of them or for good, until none fails any more.
  template <class Run>
  void ForEachAllocation(Run&& run) {
    for (const bool only_one : {true, false}) {
      uint64_t turn = 0;
      for (uint64_t failed = 1; failed > 0; ++turn) {
        SCOPED_TRACE("allocation " + std::to_string(turn) + (only_one ? "" : " and later ones"));
        failed = run(turn, only_one);
        if (HasFailure()) return;
      }
      EXPECT_GT(turn, 1u) << "nothing is allocated";
    }
  }

  std::unique_ptr<TreeFilter> MakeTree() {
    std::filesystem::remove_all(path_ + "/keys");
    std::filesystem::create_directories(path_);
    auto tree = *TreeFilter::Create({.directory = path_ + "/keys", .shard_keys = 200});
    tree->families().ClearBypassReasons(0, kNotShown);
    return tree;
  }
  static TreeFilter::File File(uint64_t number) {
    TreeFilter::File file{.number = number};
    file.identity[0] = 1;
    return file;
  }
  static std::string Key(uint64_t number) { return "key" + std::to_string(number); }
  static std::vector<uint64_t> Hashes(const TreeFilter& tree, uint64_t first, uint64_t last) {
    std::vector<uint64_t> hashes;
    for (uint64_t i = first; i < last; ++i) hashes.push_back(tree.HashOf(0, Key(i)));
    return hashes;
  }
  static uint64_t Denied(const TreeFilter& tree, uint64_t first, uint64_t last) {
    uint64_t denied = 0;
    for (uint64_t i = first; i < last; ++i) denied += !tree.MayContain(0, Key(i));
    return denied;
  }

  const std::string path_ = testing::TempDir() + "lack_of_memory." + std::to_string(getpid());
};

TEST_F(LackOfMemoryTest, AFileWhoseKeysCannotBeNotedMakesItsFamilyPassThrough) {
  constexpr uint64_t kKeys = 600;  // so that shards grow
  ForEachAllocation([&](uint64_t turn, bool only_one) -> uint64_t {
    auto state = std::make_shared<HookState>(MakeTree());
    TreeFilter& tree = state->tree();
    rocksdb::Options options;
    AttachTo(state, static_cast<rocksdb::DBOptions*>(&options));
    AttachTo(state, static_cast<rocksdb::ColumnFamilyOptions*>(&options));
    const auto memtable = tree.families().MemtableMade(0);
    tree.EndCounting();
    tree.FileCreated(File(1), Hashes(tree, 1000, 1100), {});
    rocksdb::TablePropertiesCollectorFactory::Context context;
    context.column_family_id = 0;
    context.level_at_creation = 0;
    rocksdb::TableFileCreationInfo info;
    EXPECT_TRUE(state->SetDatabase("db"));
    info.db_name = "db";
    info.cf_name = "never shown";
    info.file_path = "/somewhere/with/a/name/that/is/not/short/000007.sst";
    info.file_size = 1;
    info.job_id = 3;
    info.reason = rocksdb::TableFileCreationReason::kFlush;
    info.table_properties.column_family_id = 0;
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(Key(i));
    {
      const FailingAllocations failing(turn, only_one);
      const std::unique_ptr<rocksdb::TablePropertiesCollector> collector(
          options.table_properties_collector_factories[0]->CreateTablePropertiesCollector(context));
      for (const std::string& key : keys) {
        EXPECT_TRUE(collector->AddUserKey(key, "v", rocksdb::kEntryPut, 1, 0).ok());
      }
      EXPECT_TRUE(collector->Finish(&info.table_properties.user_collected_properties).ok());
      options.listeners[0]->OnTableFileCreated(info);
    }
    EXPECT_EQ(Denied(tree, 0, kKeys), 0u);
    EXPECT_EQ(Denied(tree, 1000, 1100), 0u);
    const uint64_t failed = FailingAllocations::failed();
    if (failed == 0) {
      EXPECT_EQ(tree.families().BypassReasonsOf(0), 0u);
      EXPECT_FALSE(tree.MayContain(0, "absent"));
    }
    return failed;
  });
}

// The memtable is made, and its keys are not denied, whether it is watched or not.
TEST_F(LackOfMemoryTest, AMemtableThatCannotBeWatchedMakesItsFamilyPassThrough) {
  // RocksDB's own, which bears no lack of memory.
  class Unwatched : public rocksdb::SkipListFactory {
   public:
    rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                            rocksdb::Allocator* allocator,
                                            const rocksdb::SliceTransform* transform,
                                            rocksdb::Logger* logger) override {
      const FailingAllocations::Pause pause;
      return SkipListFactory::CreateMemTableRep(comparator, allocator, transform, logger);
    }
  };
  // Makes the factories that RocksDB calls fail for want of memory.
  class Failing : public rocksdb::MemTableRepFactory {
   public:
    Failing(std::shared_ptr<rocksdb::MemTableRepFactory> watched, uint64_t turn, bool only_one)
        : watched_(std::move(watched)), turn_(turn), only_one_(only_one) {}
    rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                            rocksdb::Allocator* allocator,
                                            const rocksdb::SliceTransform* transform,
                                            rocksdb::Logger* logger) override {
      return watched_->CreateMemTableRep(comparator, allocator, transform, logger);
    }
    rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                            rocksdb::Allocator* allocator,
                                            const rocksdb::SliceTransform* transform,
                                            rocksdb::Logger* logger, uint32_t family) override {
      const FailingAllocations failing(turn_, only_one_);
      return watched_->CreateMemTableRep(comparator, allocator, transform, logger, family);
    }
    const char* Name() const override { return watched_->Name(); }
    bool IsInsertConcurrentlySupported() const override { return true; }

   private:
    const std::shared_ptr<rocksdb::MemTableRepFactory> watched_;
    const uint64_t turn_;
    const bool only_one_;
  };
  ForEachAllocation([&](uint64_t turn, bool only_one) -> uint64_t {
    auto state = std::make_shared<HookState>(MakeTree());
    TreeFilter& tree = state->tree();
    rocksdb::Options options;
    options.create_if_missing = true;
    options.memtable_factory = std::make_shared<Unwatched>();
    AttachTo(state, static_cast<rocksdb::ColumnFamilyOptions*>(&options));
    options.memtable_factory = std::make_shared<Failing>(options.memtable_factory, turn, only_one);
    std::filesystem::remove_all(path_ + "/db");
    std::unique_ptr<rocksdb::DB> db;
    EXPECT_TRUE(OpenDatabase(&db, options, path_ + "/db").ok());
    const uint64_t failed = FailingAllocations::failed();
    tree.EndCounting();
    for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(db->Put({}, Key(i), "v").ok());
    EXPECT_EQ(Denied(tree, 0, 10), 0u);
    // A later memtable, which is watched, does not clear the reason.
    (void)tree.families().MemtableMade(0);
    EXPECT_EQ(Denied(tree, 0, 10), 0u);
    EXPECT_TRUE(turn > 0 || (tree.families().BypassReasonsOf(0) & kNoMemory) != 0);
    EXPECT_TRUE(failed > 0 || tree.families().BypassReasonsOf(0) == 0);
    return failed;
  });
}

TEST_F(LackOfMemoryTest, AMemtableGrowsFullerAndLeavesWithoutMemory) {
  GracePeriod grace;
  MemtableFilters filters(&grace);
  const auto filter = filters.Begin(1);
  // The keys of this test would allocate memory, too.
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 100'000; ++i) hashes.push_back(Hash(Key(i), 1) & kKeptBits);
  {
    const FailingAllocations failing(0, /*only_one=*/false);
    for (const uint64_t hash : hashes) filter->Add(hash);
    EXPECT_GT(FailingAllocations::failed(), 0u);
  }
  for (const uint64_t hash : hashes) ASSERT_TRUE(filters.MayContain(hash));
  ForEachAllocation([&](uint64_t turn, bool only_one) -> uint64_t {
    const auto other = filters.Begin(1);
    other->Add(uint64_t{77} << 40);
    {
      const FailingAllocations failing(turn, only_one);
      filters.End(other.get());
      filters.End(other.get());
    }
    const uint64_t failed = FailingAllocations::failed();
    grace.Collect();
    (void)filters.Begin(1);  // takes with it what could not leave
    EXPECT_LE(other.use_count(), 2);
    grace.Collect();
    EXPECT_EQ(other.use_count(), 1);
    return failed;
  });
}

TEST_F(LackOfMemoryTest, EventsThatCannotBeNotedDenyNothing) {
  ForEachAllocation([&](uint64_t turn, bool only_one) -> uint64_t {
    auto state = std::make_shared<HookState>(MakeTree());
    TreeFilter& tree = state->tree();
    rocksdb::Options options;
    AttachTo(state, static_cast<rocksdb::DBOptions*>(&options));
    const auto memtable = tree.families().MemtableMade(0);
    state->NameFamily("default", 0);
    EXPECT_TRUE(state->SetDatabase("db"));
    tree.EndCounting();
    tree.FileCreated(File(1), Hashes(tree, 0, 100), {});
    tree.FileCreated(File(2), Hashes(tree, 100, 200), {});
    // File 9 has come behind our back, files 1 and 2 become file 3.
    rocksdb::ExternalFileIngestionInfo ingested;
    ingested.cf_name = "default";
    ingested.internal_file_path = "000009.sst";
    rocksdb::CompactionJobInfo compaction;
    compaction.job_id = 5;
    for (const uint64_t number : {1, 2}) {
      compaction.input_file_infos.push_back({.level = 0, .file_number = number});
    }
    const rocksdb::TableFileDeletionInfo deletions[] = {
        {{"db", "/db/000001.sst", 5, rocksdb::Status::OK()}},
        {{"db", "/db/000002.sst", 5, rocksdb::Status::OK()}}};
    class Named : public rocksdb::StackableDB {
     public:
      Named() : StackableDB(static_cast<rocksdb::DB*>(nullptr)) {}
      const std::string& GetName() const override { return name_; }

     private:
      const std::string name_ = "db";
    } db;
    {
      const FailingAllocations failing(turn, only_one);
      options.listeners[0]->OnExternalFileIngested(&db, ingested);
      options.listeners[0]->OnCompactionBegin(&db, compaction);
    }
    uint64_t failed = FailingAllocations::failed();
    EXPECT_TRUE(tree.MayContain(0, "in file 9"));
    EXPECT_NE(tree.families().BypassReasonsOf(0) & (kIngestion | kNoMemory), 0u);
    tree.FileCreated(File(3), Hashes(tree, 0, 200), 5);
    tree.families().ClearBypassReasons(0, kIngestion | kNoMemory);
    if (failed == 0) {
      const FailingAllocations failing(turn, only_one);
      for (const auto& deletion : deletions) options.listeners[0]->OnTableFileDeleted(deletion);
      failed += FailingAllocations::failed();
    }
    EXPECT_TRUE(tree.Reconcile([] { return std::vector<uint64_t>{3}; }).empty());
    EXPECT_EQ(Denied(tree, 0, 200), 0u);
    return failed;
  });
}

// A reconciliation or a count that was broken off is completed by the next one, and is exact.
TEST_F(LackOfMemoryTest, ASettlingThatWasBrokenOffGoesOn) {
  ForEachAllocation([&](uint64_t turn, bool only_one) -> uint64_t {
    const auto tree = MakeTree();
    const auto memtable = tree->families().MemtableMade(0);
    tree->EndCounting();
    tree->FileCreated(File(1), Hashes(*tree, 0, 300), {});
    tree->FileCreated(File(2), Hashes(*tree, 200, 400), {});
    tree->FileCreated(File(3), Hashes(*tree, 250, 500), {});
    tree->CompactionBegan(7, {1, 2});
    tree->FileCreated(File(4), Hashes(*tree, 100, 400), 7);
    tree->CompactionEnded(7);
    tree->FileDeleted(1);
    tree->FileDeleted(2);
    const auto live = [] {
      const FailingAllocations::Pause pause;
      return std::vector<uint64_t>{3, 4};
    };
    try {
      const FailingAllocations failing(turn, only_one);
      (void)tree->Reconcile(live);
    } catch (const std::bad_alloc&) {
    }
    const uint64_t failed = FailingAllocations::failed();
    EXPECT_EQ(Denied(*tree, 100, 500), 0u);
    // Others write beside it.
    tree->FileCreated(File(5), Hashes(*tree, 450, 900), {});
    EXPECT_EQ(Denied(*tree, 100, 900), 0u);
    EXPECT_TRUE(tree->Reconcile([] { return std::vector<uint64_t>{3, 4, 5}; }).empty());
    EXPECT_EQ(Denied(*tree, 100, 900), 0u);
    EXPECT_EQ(tree->figures().unreconciled, 0u);
    EXPECT_EQ(tree->figures().filter.missed, 0u);
    EXPECT_TRUE(tree->IsExact());
    return failed;
  });
}

TEST_F(LackOfMemoryTest, ACountingThatWasBrokenOffGoesOn) {
  for (const bool has_key_files : {true, false}) {
    ForEachAllocation([&](uint64_t turn, bool only_one) -> uint64_t {
      {
        const auto earlier = MakeTree();
        if (has_key_files) {
          for (uint64_t i = 1; i <= 3; ++i) {
            earlier->FileCreated(File(i), Hashes(*earlier, 100 * i, 100 * i + 150), {});
          }
        }
      }
      const auto tree = *TreeFilter::Create({.directory = path_ + "/keys", .shard_keys = 200});
      tree->families().ClearBypassReasons(0, kNotShown);
      const auto memtable = tree->families().MemtableMade(0);
      const std::vector<TreeFilter::File> files = {File(1), File(2), File(3)};
      std::vector<std::vector<uint64_t>> hashes;
      for (uint64_t i = 1; i <= 3; ++i) {
        hashes.push_back(Hashes(*tree, 100 * i, 100 * i + 150));
      }
      const auto count = [&] {
        tree->BeginCounting();
        for (const auto& file : tree->CountFromKeyFiles(tree->Uncovered(files))) {
          tree->CountFromHashes(file, hashes[file.number - 1]);
        }
        tree->EndCounting();
      };
      try {
        const FailingAllocations failing(turn, only_one);
        count();
      } catch (const std::bad_alloc&) {
      }
      const uint64_t failed = FailingAllocations::failed();
      EXPECT_EQ(Denied(*tree, 100, 450), 0u);
      count();
      EXPECT_EQ(Denied(*tree, 100, 450), 0u);
      EXPECT_FALSE(tree->IsCounting());
      EXPECT_TRUE(tree->Uncovered(files).empty());
      return failed;
    });
  }
}

// A database whose thread has no memory for a while once it has looked at the files.
class FailingThread : public rocksdb::StackableDB {
 public:
  explicit FailingThread(rocksdb::DB* db) : StackableDB(db) {}
  DB* GetRootDB() override { return this; }
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override {
    db_->GetAllColumnFamilyMetaData(metadata);
    if (looks < 3) FailingAllocations::Begin(looks, /*only_one=*/true);
    ++looks;
  }
  uint64_t looks = 0;
};

TEST_F(LackOfMemoryTest, TheCountingThreadTriesAgain) {
  std::filesystem::create_directories(path_);
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> opened;
  ASSERT_TRUE(OpenDatabase(&opened, options, path_ + "/db").ok());
  for (int file = 0; file < 3; ++file) {
    ASSERT_TRUE(opened->Put({}, Key(static_cast<uint64_t>(file)), "v").ok());
    ASSERT_TRUE(opened->Flush({}).ok());
  }
  opened.reset();
  const auto filter = *DatabaseFilter::Create({.directory = path_ + "/keys"});
  filter->Attach(&options);
  ASSERT_TRUE(OpenDatabase(&opened, options, path_ + "/db").ok());
  FailingThread db(opened.release());
  filter->Start(&db, {db.DefaultColumnFamily()});
  filter->WaitUntilCounted();
  filter->WaitUntilReconciled();
  EXPECT_GE(db.looks, 4u);
  EXPECT_EQ(filter->BypassReasonsOf(db.DefaultColumnFamily()), "");
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(filter->MayContain(db.DefaultColumnFamily(), Key(i)));
  }
  EXPECT_FALSE(filter->MayContain(db.DefaultColumnFamily(), "absent"));
  filter->Stop();
}

TEST_F(LackOfMemoryTest, DatabaseOfTheCFunctionsIsUnchangedIfTheFilterCannotStart) {
  rocksdb_options_t* const options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_writeoptions_t* const write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* const read = rocksdb_readoptions_create();
  ForEachAllocation([&](uint64_t turn, bool only_one) -> uint64_t {
    std::filesystem::remove_all(path_);
    char* error = nullptr;
    tamis_lsm_t* const filter = tamis_lsm_create(options, path_.c_str(), 0.003, &error);
    EXPECT_STREQ(error, nullptr);
    rocksdb_options_t* const attached = rocksdb_options_create_copy(options);
    tamis_lsm_attach(filter, attached);
    rocksdb_t* const db = rocksdb_open(attached, path_.c_str(), &error);
    EXPECT_STREQ(error, nullptr);
    FailingAllocations::Begin(turn, only_one);
    tamis_lsm_start(filter, db, nullptr, 0, &error);
    FailingAllocations::End();
    const uint64_t failed = FailingAllocations::failed();
    EXPECT_EQ(error != nullptr, failed > 0);
    std::free(error);
    error = nullptr;

    rocksdb_put(db, write, "key", 3, "value", 5, &error);
    EXPECT_STREQ(error, nullptr);
    size_t size = 0;
    char* const value = rocksdb_get(db, read, "key", 3, &size, &error);
    EXPECT_EQ(std::string(value, size), "value");
    std::free(value);
    EXPECT_TRUE(tamis_lsm_may_contain(filter, db, nullptr, "key", 3));
    uint64_t excluded = 0;  // a property of the filter alone
    EXPECT_EQ(rocksdb_property_int(db, "tamis.lsm.excluded", &excluded) == 0, failed == 0);
    rocksdb_close(db);
    rocksdb_options_destroy(attached);
    tamis_lsm_destroy(filter);
    return failed;
  });
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(options);
}

// The C functions are tested here since this program has them, though memory suffices.
TEST_F(LackOfMemoryTest, TheCFunctionsSayWhyAFilterDoesNotAnswer) {
  rocksdb_options_t* const plain = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(plain, 1);
  char* error = nullptr;
  tamis_lsm_t* const filter = tamis_lsm_create(plain, path_.c_str(), 0.003, &error);
  ASSERT_STREQ(error, nullptr);
  rocksdb_options_t* const attached = rocksdb_options_create_copy(plain);
  tamis_lsm_attach(filter, attached);
  const char* const names[] = {"default"};
  rocksdb_column_family_handle_t* handles[] = {nullptr};
  rocksdb_t* const db =
      rocksdb_open_column_families(plain, path_.c_str(), 1, names, &attached, handles, &error);
  ASSERT_STREQ(error, nullptr);
  tamis_lsm_start(filter, db, handles, 1, &error);
  ASSERT_STREQ(error, nullptr);
  tamis_lsm_wait(filter);
  rocksdb_writeoptions_t* const write = rocksdb_writeoptions_create();
  rocksdb_put_cf(db, write, handles[0], "key", 3, "value", 5, &error);
  rocksdb_flushoptions_t* const flush = rocksdb_flushoptions_create();
  rocksdb_flush_cf(db, flush, handles[0], &error);
  ASSERT_STREQ(error, nullptr);
  EXPECT_TRUE(tamis_lsm_may_contain(filter, db, handles[0], "key", 3));
  char* const property = rocksdb_property_value_cf(db, handles[0], "tamis.lsm");
  EXPECT_NE(std::string(property).find("passes through: the filter hears no events"),
            std::string::npos)
      << property;
  std::free(property);
  tamis_lsm_start(filter, db, handles, 1, &error);
  EXPECT_TRUE(std::string(error).starts_with("cannot start the filter: it was started before"))
      << error;
  std::free(error);
  error = nullptr;
  rocksdb_put_cf(db, write, handles[0], "other", 5, "value", 5, &error);
  EXPECT_STREQ(error, nullptr);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_writeoptions_destroy(write);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_close(db);
  rocksdb_options_destroy(attached);
  rocksdb_options_destroy(plain);
  tamis_lsm_destroy(filter);
}

}  // namespace
}  // namespace tamis::lsm
