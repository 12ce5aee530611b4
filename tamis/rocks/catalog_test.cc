// The catalog against a model of it, over reopenings and compactions; and catalogs that cannot be
// read.
#include "tamis/rocks/catalog.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "tamis/base/random.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

// A file system in memory that counts how often a log is brought to the disk.
class SyncCountingEnv : public rocksdb::EnvWrapper {
 public:
  SyncCountingEnv()
      : SyncCountingEnv(std::unique_ptr<rocksdb::Env>(NewMemEnv(rocksdb::Env::Default()))) {}

  uint64_t syncs() const { return syncs_; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = rocksdb::EnvWrapper::NewWritableFile(name, file, options);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<File>(std::move(*file), this);
    }
    return status;
  }

 private:
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::unique_ptr<rocksdb::WritableFile> file, SyncCountingEnv* env)
        : WritableFileWrapper(file.get()), file_(std::move(file)), env_(*env) {}
    rocksdb::Status Sync() override {
      ++env_.syncs_;
      return WritableFileWrapper::Sync();
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> file_;
    SyncCountingEnv& env_;
  };

  explicit SyncCountingEnv(std::unique_ptr<rocksdb::Env> memory)
      : rocksdb::EnvWrapper(memory.get()), memory_(std::move(memory)) {}

  const std::unique_ptr<rocksdb::Env> memory_;
  std::atomic<uint64_t> syncs_ = 0;
};

class CatalogTest : public ::testing::Test {
 protected:
  Status Load() {
    Store::Options options;
    options.directory = directory_;
    options.env = &env_;
    options.sync = sync_;
    auto store = Store::Open(options);
    if (!store.ok()) return store.status();
    store_ = std::move(*store);
    auto catalog = Catalog::Load(store_.get());
    if (!catalog.ok()) return catalog.status();
    catalog_ = std::move(*catalog);
    return Status::Ok();
  }
  Status LoadAgain() {
    catalog_.reset();
    store_.reset();
    return Load();
  }
  void PutMeta(const std::string& key, const std::string& value) {
    rocksdb::WriteBatch batch;
    batch.Put(store_->meta(), key, value);
    ASSERT_TRUE(store_->Write(&batch).ok());
  }

  // Text key and text column, an index on the latter for each id.
  static TableSchema Table(uint32_t id, const std::set<uint32_t>& indexes = {}) {
    TableSchema schema;
    schema.id = id;
    schema.name = "t" + std::to_string(id);
    schema.columns = {{.id = 1, .name = "k", .nullable = false}, {.id = 2, .name = "v"}};
    schema.key = {0};
    schema.next_column_id = 3;
    for (const uint32_t index : indexes) {
      schema.indexes.push_back({.id = index, .name = "i" + std::to_string(index), .columns = {1}});
      schema.next_index_id = index + 1;
    }
    return schema;
  }
  static pb::RegionRecord Region(uint64_t id, uint32_t table, const std::string& start = "",
                                 const std::string& end = "") {
    pb::RegionRecord region;
    region.set_id(id);
    region.set_table_id(table);
    region.set_start(start);
    region.set_end(end);
    return region;
  }
  // The key of the row in a table, and its entry in an index.
  static std::string RowKey(const std::string& key) {
    return *KeyFormat(Table(1)).Encode({Value::Text(key), Value()});
  }
  static std::string EntryOf(uint64_t region, uint32_t index, const std::string& key) {
    const IndexSpec spec{.id = index, .name = "i", .columns = {1}};
    const Row row = {Value::Text(key), Value::Text("v of " + key)};
    return IndexEntry::Of(Table(1), spec, row)->StoreKey(region, index, RowKey(key));
  }
  void PutEntry(const std::string& entry) {
    rocksdb::WriteBatch batch;
    batch.Put(store_->index(), entry, "");
    ASSERT_TRUE(store_->Write(&batch).ok());
  }
  static std::set<std::string> KeysOf(const Store& store, rocksdb::ColumnFamilyHandle* family) {
    std::set<std::string> keys;
    std::unique_ptr<rocksdb::Iterator> it(store.db()->NewIterator(rocksdb::ReadOptions(), family));
    for (it->SeekToFirst(); it->Valid(); it->Next()) keys.insert(it->key().ToString());
    EXPECT_TRUE(it->status().ok());
    return keys;
  }
  std::set<std::string> Entries() const { return KeysOf(*store_, store_->index()); }

  SyncCountingEnv env_;
  std::string directory_ = "/catalog_test";
  bool sync_ = false;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogTest, NewStoreIsEmptyAndCountsFromOne) {
  ASSERT_EQ(Load(), Status::Ok());
  EXPECT_EQ(catalog_->openings(), 1u);
  EXPECT_TRUE(catalog_->Tables().empty());
  EXPECT_TRUE(catalog_->Regions().empty());
  EXPECT_EQ(catalog_->NewTableId(), 1u);
  EXPECT_EQ(catalog_->NewRegionId(), 1u);
  EXPECT_EQ(catalog_->NewEpoch(), 1u);
}

TEST_F(CatalogTest, CommittedNumbersAreNeverGivenAgain) {
  ASSERT_EQ(Load(), Status::Ok());
  uint64_t number = 1;
  for (uint64_t opening = 1; opening < 5; ++opening) {
    EXPECT_EQ(catalog_->openings(), opening);
    for (int i = 0; i < 3; ++i, ++number) {
      EXPECT_EQ(catalog_->NewTableId(), number);
      EXPECT_EQ(catalog_->NewRegionId(), number);
      EXPECT_EQ(catalog_->NewEpoch(), number);
    }
    ASSERT_EQ(catalog_->Commit({}), Status::Ok());
    ASSERT_EQ(LoadAgain(), Status::Ok());
  }
}

TEST_F(CatalogTest, APreparedRegionsIdIsOnTheDiskAndNeverGivenAgain) {
  ASSERT_EQ(Load(), Status::Ok());
  const uint64_t before = env_.syncs();
  const auto id = catalog_->PrepareRegion();
  ASSERT_TRUE(id.ok());
  EXPECT_GT(env_.syncs(), before);
  ASSERT_EQ(LoadAgain(), Status::Ok());
  EXPECT_EQ(catalog_->NewRegionId(), *id + 1);
}

// Entries under the id are garbage again after Discard, and in the next process.
TEST_F(CatalogTest, CompactionsKeepWhatStandsUnderAPreparedRegionsId) {
  for (const bool discarded : {false, true}) {
    ASSERT_EQ(LoadAgain(), Status::Ok());
    ASSERT_EQ(catalog_->Commit({.put_tables = {Table(1, {1})}}), Status::Ok());
    const auto used = catalog_->PrepareRegion(), other = catalog_->PrepareRegion();
    ASSERT_TRUE(used.ok() && other.ok());
    PutEntry(EntryOf(*used, 1, "a"));
    PutEntry(EntryOf(*other, 1, "a"));
    ASSERT_EQ(catalog_->Commit({}), Status::Ok());  // compactions hear of the numbers
    ASSERT_EQ(store_->Compact(), Status::Ok());
    EXPECT_TRUE(Entries().contains(EntryOf(*used, 1, "a")));
    EXPECT_TRUE(Entries().contains(EntryOf(*other, 1, "a")));
    ASSERT_EQ(catalog_->Commit({.put_regions = {Region(*used, 1)}}), Status::Ok());
    catalog_->Discard(*used);  // it is a region, and stays one
    if (discarded) {
      catalog_->Discard(*other);
    } else {
      ASSERT_EQ(LoadAgain(), Status::Ok());
    }
    ASSERT_EQ(store_->Compact(), Status::Ok());
    EXPECT_TRUE(Entries().contains(EntryOf(*used, 1, "a")));
    EXPECT_FALSE(Entries().contains(EntryOf(*other, 1, "a")));
  }
}

TEST_F(CatalogTest, StoreOfAnotherFormatIsRefusedByItsNumber) {
  ASSERT_EQ(Load(), Status::Ok());
  for (const uint32_t version : {kStoreFormatVersion - 1, kStoreFormatVersion + 1}) {
    pb::StoreRecord record;
    record.set_format_version(version);
    PutMeta("F", record.SerializeAsString());
    const Status status = LoadAgain();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    for (const std::string& said :
         {"it has format " + std::to_string(version),
          "reads format " + std::to_string(kStoreFormatVersion), store_->options().directory}) {
      EXPECT_NE(status.message().find(said), std::string::npos) << status;
    }
  }
}

TEST_F(CatalogTest, DamagedRecordsAreNamedWithTheStore) {
  const std::pair<std::string, std::string> damaged[] = {
      {"F", "\xff"},
      {"T" + std::string(4, '\1'), "\xff"},
      {"R" + std::string(8, '\1'), "\xff"},
      {"R" + std::string(8, '\1'), Region(0, 1).SerializeAsString()},
      {"R" + std::string(8, '\1'), Region(uint64_t{1} << 63, 1).SerializeAsString()},
  };
  ASSERT_EQ(Load(), Status::Ok());
  std::string format;
  ASSERT_TRUE(store_->db()->Get(rocksdb::ReadOptions(), store_->meta(), "F", &format).ok());
  for (const auto& [key, bytes] : damaged) {
    PutMeta(key, bytes);
    const Status status = LoadAgain();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find("cannot open store \"/catalog_test\""), std::string::npos)
        << status;
    PutMeta("F", format);
    rocksdb::WriteBatch batch;
    if (key != "F") batch.Delete(store_->meta(), key);
    ASSERT_TRUE(store_->Write(&batch).ok());
  }
  PutMeta("other", "\xff");
  EXPECT_EQ(LoadAgain(), Status::Ok()) << "records of other kinds are left alone";
}

// Entries of a dropped index are garbage, also where its id is older than the tables' own counts.
TEST_F(CatalogTest, IndexIdsOfOlderStoresCountAsGiven) {
  ASSERT_EQ(Load(), Status::Ok());
  catalog_->NewRegionId();
  ASSERT_EQ(catalog_->Commit({.put_tables = {Table(1, {1})}, .put_regions = {Region(1, 1)}}),
            Status::Ok());
  pb::StoreRecord record;
  record.set_format_version(kStoreFormatVersion);
  record.set_next_region_id(2);
  record.set_next_index_id(9);
  PutMeta("F", record.SerializeAsString());
  ASSERT_EQ(LoadAgain(), Status::Ok());
  EXPECT_EQ(catalog_->Table(1)->next_index_id, 9u);
}

TEST_F(CatalogTest, IndexIsMarkedCompleteOnceAndForTheEpochAlone) {
  ASSERT_EQ(Load(), Status::Ok());
  pb::RegionRecord region = Region(1, 1);
  region.set_epoch(5);
  ASSERT_EQ(catalog_->Commit({.put_tables = {Table(1, {1, 2})}, .put_regions = {region}}),
            Status::Ok());
  EXPECT_FALSE(*catalog_->MarkComplete(1, 4, 2));
  EXPECT_FALSE(*catalog_->MarkComplete(1, 6, 2));
  EXPECT_FALSE(*catalog_->MarkComplete(2, 5, 2));
  EXPECT_EQ(catalog_->Region(1)->complete_indexes_size(), 0);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(*catalog_->MarkComplete(1, 5, 2));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(catalog_->Region(1)->complete_indexes_size(), 1);
    EXPECT_EQ(catalog_->Region(1)->complete_indexes(0), 2u);
    ASSERT_EQ(LoadAgain(), Status::Ok());
  }
}

// A compaction of garbage takes the regions that were noted. Garbage that was planted in another
// one stays.
TEST_F(CatalogTest, ChangesThatMakeGarbageAreSyncedAndNoteTheirRegions) {
  using Change = Catalog::Change;
  struct Case {
    const char* name;
    Change change;
    bool makes_garbage;
  };
  pb::RegionRecord moved = Region(1, 1, RowKey("b"), RowKey("y"));
  moved.set_epoch(77);
  TableSchema named = Table(1, {1, 2});
  named.name = "other";
  const Case cases[] = {
      {"erased region", {.erase_regions = {1}}, true},
      {"later start", {.put_regions = {Region(1, 1, RowKey("c"), RowKey("y"))}}, true},
      {"earlier end", {.put_regions = {Region(1, 1, RowKey("b"), RowKey("x"))}}, true},
      {"dropped index", {.put_tables = {Table(1, {1})}}, true},
      {"dropped table", {.erase_tables = {1}}, true},
      {"moved region", {.put_regions = {moved}}, false},
      {"new region", {.put_regions = {Region(3, 2, RowKey("a"), RowKey("b"))}}, false},
      {"new table", {.put_tables = {Table(3, {1})}}, false},
      {"new index", {.put_tables = {Table(1, {1, 2, 3})}}, false},
      {"renamed table", {.put_tables = {named}}, false},
      {"region of another table", {.erase_regions = {2}}, false},
      {"dropped index of another table", {.put_tables = {Table(2)}}, false},
  };
  for (const bool sync : {false, true}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      sync_ = sync;
      directory_ += "'";  // a new one
      ASSERT_EQ(LoadAgain(), Status::Ok());
      for (int i = 0; i < 9; ++i) catalog_->NewRegionId();
      ASSERT_EQ(
          catalog_->Commit({.put_tables = {Table(1, {1, 2}), Table(2, {1})},
                            .put_regions = {Region(1, 1, RowKey("b"), RowKey("y")), Region(2, 2)}}),
          Status::Ok());
      const std::string planted = EntryOf(1, 1, "a");
      const std::string kept = EntryOf(1, 1, "m");
      PutEntry(planted);
      PutEntry(kept);
      const bool whole =
          c.change.erase_regions == std::vector<uint64_t>{1} || !c.change.erase_tables.empty();
      const uint64_t before = env_.syncs();
      ASSERT_EQ(catalog_->Commit(c.change), Status::Ok());
      const bool other = std::string_view(c.name).ends_with("another table");
      EXPECT_EQ(env_.syncs() > before, c.makes_garbage || other || sync);
      store_->CompactGarbage(4);
      store_->AwaitGarbage();
      EXPECT_EQ(Entries().contains(planted), !c.makes_garbage);
      EXPECT_EQ(Entries().contains(kept), !whole);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Run under the thread sanitizer, too.
TEST_F(CatalogTest, AllCallsMayRunAtOnce) {
  ASSERT_EQ(Load(), Status::Ok());
  std::atomic<bool> done = false;
  std::atomic<int> faults = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        for (const TableSchema& table : catalog_->Tables()) {
          const auto found = catalog_->Table(table.id);
          faults += found.has_value() && found->name != table.name;
          (void)catalog_->Table(table.name);
          catalog_->HasIndex(table.id, 1);
          for (const auto& region : catalog_->Regions(table.id)) {
            faults += region.table_id() != table.id;
            (void)catalog_->Region(region.id());
          }
        }
        (void)catalog_->region_count();
        (void)catalog_->openings();
      }
    });
  }
  std::set<uint64_t> epochs;
  std::thread numbers([&] {
    while (!done) faults += !epochs.insert(catalog_->NewEpoch()).second;
  });
  for (int i = 0; i < 300; ++i) {
    const uint32_t table = catalog_->NewTableId();
    const uint64_t region = catalog_->NewRegionId();
    const uint64_t epoch = catalog_->NewEpoch();
    pb::RegionRecord record = Region(region, table);
    record.set_epoch(epoch);
    EXPECT_EQ(catalog_->Commit({.put_tables = {Table(table, {1})}, .put_regions = {record}}),
              Status::Ok());
    EXPECT_TRUE(*catalog_->MarkComplete(region, epoch, 1));
    if (i % 3 != 0) {
      EXPECT_EQ(catalog_->Commit({.erase_tables = {table}}), Status::Ok());
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  numbers.join();
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(catalog_->Tables().size(), 100u);
  EXPECT_EQ(catalog_->region_count(), 100u);
}

// ---- The model

class CatalogModelTest : public CatalogTest {
 protected:
  struct Entry {
    uint64_t region;
    uint32_t index;
    std::string key;
  };

  void Run(uint64_t seed) {
    random_ = Random(seed);
    ASSERT_EQ(Load(), Status::Ok());
    next_region_ = 1;
    for (int step = 0; step < 120 && !HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      if (random_.OneIn(12)) {
        ASSERT_EQ(LoadAgain(), Status::Ok());
        next_region_ = seen_region_;
      } else if (random_.OneIn(8)) {
        ASSERT_TRUE(store_->Compact().ok());
        DropGarbage();
      } else if (random_.OneIn(3)) {
        AddEntries();
      } else {
        Change();
      }
      Compare();
    }
  }

 private:
  template <class Map>
  uint64_t AnyOf(const Map& map) {
    return std::next(map.begin(), static_cast<ptrdiff_t>(random_.Uniform(map.size())))->first;
  }
  std::string AnyKey() { return std::string(1, static_cast<char>('a' + random_.Uniform(8))); }

  TableSchema AnySchema(uint32_t id) {
    std::set<uint32_t> indexes;
    for (uint32_t index = 1; index <= 3; ++index) {
      if (random_.OneIn(2)) indexes.insert(index);
    }
    TableSchema schema = Table(id, indexes);
    if (auto old = tables_.find(id); old != tables_.end()) {
      schema.next_index_id = std::max(schema.next_index_id, old->second.next_index_id);
      schema.version = old->second.version + 1;
    }
    return schema;
  }

  void Change() {
    Catalog::Change change;
    if (random_.OneIn(3)) {
      const bool is_new = tables_.empty() || random_.OneIn(3);
      change.put_tables.push_back(
          AnySchema(is_new ? catalog_->NewTableId() : static_cast<uint32_t>(AnyOf(tables_))));
    }
    if (!tables_.empty() && random_.OneIn(6)) {
      const auto id = static_cast<uint32_t>(AnyOf(tables_));
      if (change.put_tables.empty() || change.put_tables[0].id != id) {
        change.erase_tables.push_back(id);
      }
    }
    for (uint64_t n = random_.Uniform(3); n > 0; --n) {
      uint32_t table = 1 + static_cast<uint32_t>(random_.Uniform(12));
      if (!change.put_tables.empty() && random_.OneIn(2)) table = change.put_tables[0].id;
      const uint64_t id =
          regions_.empty() || random_.OneIn(2) ? catalog_->NewRegionId() : AnyOf(regions_);
      next_region_ = std::max(next_region_, id + 1);
      if (auto old = regions_.find(id); old != regions_.end()) table = old->second.table_id();
      if (std::ranges::find(change.erase_tables, table) != change.erase_tables.end()) continue;
      pb::RegionRecord region = Region(id, table, random_.OneIn(2) ? RowKey(AnyKey()) : "",
                                       random_.OneIn(2) ? RowKey(AnyKey()) : "");
      region.set_epoch(catalog_->NewEpoch());
      change.put_regions.push_back(region);
    }
    if (!regions_.empty() && random_.OneIn(4)) {
      const uint64_t id = AnyOf(regions_);
      if (std::ranges::find(change.put_regions, id, &pb::RegionRecord::id) ==
          change.put_regions.end()) {
        change.erase_regions.push_back(id);
      }
    }
    const bool fits = std::ranges::all_of(change.put_regions, [&](const pb::RegionRecord& region) {
      return tables_.contains(region.table_id()) ||
             (!change.put_tables.empty() && change.put_tables[0].id == region.table_id());
    });
    const Status status = catalog_->Commit(change);
    EXPECT_EQ(status.code(), fits ? StatusCode::kOk : StatusCode::kUnavailable) << status;
    if (fits) Apply(change);
  }
  void Apply(const Catalog::Change& change) {
    for (const TableSchema& table : change.put_tables) {
      if (tables_.contains(table.id)) continue;
      rocksdb::WriteBatch batch;
      batch.Put(store_->rows(), RowStoreKey(table.id, RowKey("r")), "row");
      batch.Put(store_->rows(), RowStoreKey(table.id, std::string("\xff\xff")), "row");
      ASSERT_TRUE(store_->Write(&batch).ok());
    }
    for (const TableSchema& table : change.put_tables) tables_[table.id] = table;
    for (const uint32_t id : change.erase_tables) {
      tables_.erase(id);
      std::erase_if(regions_, [&](const auto& entry) { return entry.second.table_id() == id; });
    }
    for (const pb::RegionRecord& region : change.put_regions) regions_[region.id()] = region;
    for (const uint64_t id : change.erase_regions) regions_.erase(id);
    seen_region_ = next_region_;
  }

  void AddEntries() {
    for (uint64_t n = 1 + random_.Uniform(10); n > 0; --n) {
      const Entry entry{1 + random_.Uniform(next_region_ + 2),
                        1 + static_cast<uint32_t>(random_.Uniform(5)), AnyKey()};
      const std::string bytes = EntryOf(entry.region, entry.index, entry.key);
      PutEntry(bytes);
      entries_.insert_or_assign(bytes, entry);
    }
  }
  // The region of the entry, its table, its index or its place in the region is gone for good.
  bool IsGarbage(const Entry& entry) const {
    if (entry.region >= seen_region_) return false;
    auto region = regions_.find(entry.region);
    if (region == regions_.end()) return true;
    const TableSchema& table = tables_.at(region->second.table_id());
    if (entry.index >= table.next_index_id) return false;
    if (table.FindIndex(entry.index) == nullptr) return true;
    const std::string key = RowKey(entry.key);
    return key < region->second.start() ||
           (!region->second.end().empty() && key >= region->second.end());
  }
  void DropGarbage() {
    std::erase_if(entries_, [this](const auto& entry) { return IsGarbage(entry.second); });
  }

  void Compare() {
    std::vector<std::string> tables, regions;
    for (const TableSchema& table : catalog_->Tables()) tables.push_back(SerializeSchema(table));
    size_t i = 0;
    ASSERT_EQ(tables.size(), tables_.size());
    for (const auto& [id, table] : tables_) {
      EXPECT_EQ(tables[i++], SerializeSchema(table));
      EXPECT_EQ(SerializeSchema(*catalog_->Table(id)), SerializeSchema(table));
      EXPECT_EQ(SerializeSchema(*catalog_->Table(table.name)), SerializeSchema(table));
      for (uint32_t index = 1; index <= 4; ++index) {
        EXPECT_EQ(catalog_->HasIndex(id, index), table.FindIndex(index) != nullptr);
      }
      std::vector<std::pair<std::string, uint64_t>> in_order;
      for (const auto& [region_id, region] : regions_) {
        if (region.table_id() == id) in_order.emplace_back(region.start(), region_id);
      }
      std::ranges::sort(in_order);
      const auto of_table = catalog_->Regions(id);
      ASSERT_EQ(of_table.size(), in_order.size());
      for (size_t n = 0; n < of_table.size(); ++n) {
        EXPECT_EQ(of_table[n].start(), in_order[n].first);
        EXPECT_EQ(of_table[n].table_id(), id);
      }
    }
    EXPECT_EQ(catalog_->Table(99), std::nullopt);
    EXPECT_EQ(catalog_->Table("none").status().code(), StatusCode::kNotFound);
    EXPECT_FALSE(catalog_->HasIndex(99, 1));
    EXPECT_EQ(catalog_->Region(999), std::nullopt);
    EXPECT_EQ(catalog_->region_count(), regions_.size());
    const auto all = catalog_->Regions();
    ASSERT_EQ(all.size(), regions_.size());
    i = 0;
    for (const auto& [id, region] : regions_) {
      EXPECT_EQ(all[i++].SerializeAsString(), region.SerializeAsString());
      EXPECT_EQ(catalog_->Region(id)->SerializeAsString(), region.SerializeAsString());
    }
    std::set<std::string> rows, entries;
    for (const auto& [id, table] : tables_) {
      rows.insert(RowStoreKey(id, RowKey("r")));
      rows.insert(RowStoreKey(id, std::string("\xff\xff")));
    }
    EXPECT_EQ(KeysOf(*store_, store_->rows()), rows);
    for (const auto& [bytes, entry] : entries_) entries.insert(bytes);
    EXPECT_EQ(Entries(), entries);
  }

  Random random_{0};
  std::map<uint32_t, TableSchema> tables_;
  std::map<uint64_t, pb::RegionRecord> regions_;
  std::map<std::string, Entry> entries_;
  uint64_t next_region_ = 1;  // the number that is given out next
  uint64_t seen_region_ = 1;  // the number as of the last change
};

class SeededCatalogModelTest : public CatalogModelTest,
                               public ::testing::WithParamInterface<uint64_t> {};

TEST_P(SeededCatalogModelTest, ChangesSurviveReopeningAndCompactionsDropOnlyGarbage) {
  Run(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SeededCatalogModelTest, ::testing::Range<uint64_t>(1, 13));

}  // namespace
}  // namespace tamis
