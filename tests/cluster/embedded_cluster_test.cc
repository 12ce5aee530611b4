// The embedded cluster and its store: garbage of splits, growth. The behaviour of every kind of
// cluster is in cluster_suite_test.cc.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/key_format.h"
#include "tests/cluster/find_rows.h"

namespace tamis {
namespace {

class EmbeddedClusterTest : public ::testing::Test {
 protected:
  EmbeddedClusterTest() {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tamis_embedded_cluster_test." + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    Open();
  }
  ~EmbeddedClusterTest() override {
    Close();
    std::filesystem::remove_all(directory_);
  }

  void Open() {
    executor_ = std::make_unique<ThreadExecutor>(4);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 4;
    options.server.split_bytes = split_bytes_;
    options.store.background_compactions = background_compactions_;
    auto cluster = RocksCluster::Open(options, executor_.get());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = std::move(*cluster);
    engine_ = std::make_unique<Engine>(cluster_.get(), executor_.get(), Engine::Options{});
  }
  void Close() {
    executor_->Stop();
    engine_.reset();
    cluster_.reset();
    executor_.reset();
  }

  SchemaPtr MakeTable() {
    TableSchema schema;
    schema.name = "packages";
    schema.columns = {{.name = "name", .type = Type::kText, .nullable = false},
                      {.name = "section", .type = Type::kText},
                      {.name = "size", .type = Type::kInt64}};
    schema.key = {0};
    schema.indexes = {{.name = "section", .columns = {1}, .expected_values = 100},
                      {.name = "size", .columns = {2}, .expected_values = 1000}};
    auto made = Await<Result<TableSchema>>(executor_.get(),
                                           [&](auto done) { cluster_->CreateTable(schema, done); });
    EXPECT_TRUE(made.ok()) << made.status();
    auto table = engine_->Table("packages");
    EXPECT_TRUE(table.ok()) << table.status();
    return *table;
  }

  static Row MakeRow(int i) {
    char name[16];
    std::snprintf(name, sizeof name, "p%06d", i);
    return {Value::Text(name), Value::Text("s" + std::to_string(i / 100)), Value::Int64(i)};
  }

  void Fill(const SchemaPtr& schema, int rows) {
    for (int i = 0; i < rows; i += 500) {
      std::vector<Write> writes;
      for (int j = i; j < std::min(rows, i + 500); ++j) writes.push_back({.row = MakeRow(j)});
      for (const Status& status : engine_->Apply(schema, std::move(writes)))
        ASSERT_TRUE(status.ok()) << status;
    }
  }

  CheckReport Check() {
    auto report = Await<Result<CheckReport>>(executor_.get(),
                                             [&](auto done) { cluster_->Check("packages", done); });
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : CheckReport();
  }

  // Splits every region once.
  void SplitAll(const SchemaPtr& schema) {
    auto regions = Await<Result<std::vector<RegionInfo>>>(
        executor_.get(), [&](auto done) { cluster_->ListRegions(schema->name, {}, done); });
    for (const RegionInfo& region : *regions) {
      const Status status = Await<Status>(
          executor_.get(), [&](auto done) { cluster_->SplitRegion(region.id, "", done); });
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  std::vector<Row> Find(const SchemaPtr& schema, Predicate predicate, Explain* explain = nullptr) {
    return FindRows(*engine_, schema, {.predicate = std::move(predicate)}, explain);
  }

  uint64_t split_bytes_ = 0;
  bool background_compactions_ = true;
  std::filesystem::path directory_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EmbeddedClusterTest, BothDaughtersHaveTheirEntriesFromTheSplitOn) {
  const SchemaPtr schema = MakeTable();
  Fill(schema, 2000);
  for (int i = 0; i < 3; ++i) {
    SplitAll(schema);
    // The catalog is asked, since the background work counts the filters meanwhile.
    for (const pb::RegionRecord& region : cluster_->catalog().Regions()) {
      EXPECT_EQ(region.complete_indexes_size(), 2) << region.id();
    }
    while (cluster_->pending_work() > 0) Sleep(executor_.get(), std::chrono::milliseconds(5));
    const CheckReport report = Check();
    EXPECT_TRUE(report.ok());
    EXPECT_EQ(report.entries, 4000u);
  }
}

TEST_F(EmbeddedClusterTest, TheGarbageOfSplitsIsDroppedOnceTheDaughtersAreComplete) {
  for (const bool compact : {false, true}) {
    Close();
    std::filesystem::remove_all(directory_);
    background_compactions_ = compact;
    Open();
    const SchemaPtr schema = MakeTable();
    Fill(schema, 2000);
    for (int i = 0; i < 2; ++i) {
      SplitAll(schema);
      while (cluster_->pending_work() > 0) Sleep(executor_.get(), std::chrono::milliseconds(5));
    }
    // It has been started by then.
    cluster_->store().AwaitGarbage();
    const CheckReport report = Check();
    EXPECT_TRUE(report.ok());
    EXPECT_EQ(report.entries, 4000u);
    EXPECT_EQ(report.incomplete, 0u);
    EXPECT_EQ(report.garbage > 0, !compact);
    EXPECT_EQ(Find(schema, Predicate::Compare(1, Predicate::Op::kEq, Value::Text("s7"))).size(),
              100u);
  }
}

// Damage that was done without the code that keeps rows, entries and filters together.
TEST_F(EmbeddedClusterTest, TheCheckFindsEveryKindOfDamage) {
  const SchemaPtr schema = MakeTable();
  Fill(schema, 10);
  ASSERT_TRUE(Check().ok());
  const Store& store = cluster_->store();
  const auto write = [&](auto&& change) {
    rocksdb::WriteBatch batch;
    change(&batch);
    ASSERT_TRUE(store.db()->Write(rocksdb::WriteOptions(), &batch).ok());
  };
  const auto key_of = [&](int i) {
    return RowStoreKey(schema->id, *KeyFormat(*schema).Encode(MakeRow(i)));
  };
  std::string row;
  ASSERT_TRUE(store.db()->Get(rocksdb::ReadOptions(), store.rows(), key_of(3), &row).ok());
  std::string other;
  ASSERT_TRUE(store.db()->Get(rocksdb::ReadOptions(), store.rows(), key_of(4), &other).ok());
  std::string entry;
  {
    std::unique_ptr<rocksdb::Iterator> entries(
        store.db()->NewIterator(rocksdb::ReadOptions(), store.index()));
    entries->SeekToFirst();
    ASSERT_TRUE(entries->Valid());
    entry = entries->key().ToString();
  }
  const auto said = [](const CheckReport& report, std::string_view what) {
    return std::ranges::any_of(report.problems, [&](const std::string& problem) {
      return problem.find(what) != std::string::npos;
    });
  };

  write([&](auto* batch) { batch->Delete(store.rows(), key_of(3)); });
  CheckReport report = Check();
  EXPECT_EQ(report.rows, 9u);
  EXPECT_EQ(report.foreign_entries, 2u) << report.ToString();
  EXPECT_EQ(report.missing_entries, 0u);
  EXPECT_EQ(report.garbage, 0u);
  EXPECT_TRUE(said(report, "which is not there")) << report.ToString();

  write([&](auto* batch) { batch->Put(store.rows(), key_of(3), other); });
  report = Check();  // both are of one section
  EXPECT_EQ(report.foreign_entries, 1u) << report.ToString();
  EXPECT_EQ(report.missing_entries, 1u) << report.ToString();
  EXPECT_TRUE(said(report, "which has another value")) << report.ToString();

  write([&](auto* batch) { batch->Put(store.rows(), key_of(3), row); });
  ASSERT_TRUE(Check().ok());
  write([&](auto* batch) { batch->Delete(store.index(), entry); });
  report = Check();
  EXPECT_EQ(report.foreign_entries, 0u);
  EXPECT_EQ(report.missing_entries, 1u) << report.ToString();
  EXPECT_TRUE(said(report, "lacks the entry")) << report.ToString();

  write([&](auto* batch) { batch->Put(store.index(), entry, ""); });
  ASSERT_TRUE(Check().ok());
  write([&](auto* batch) {
    batch->Put(store.index(), entry.substr(0, IndexPrefix(0, 0).size()) + "\xff", "");
  });
  report = Check();
  EXPECT_EQ(report.foreign_entries, 1u) << report.ToString();
  EXPECT_TRUE(said(report, "cannot be read")) << report.ToString();
}

// Overwriting is no growth.
TEST_F(EmbeddedClusterTest, ARegionThatIsOnlyOverwrittenIsNotSplit) {
  Close();
  split_bytes_ = 64 << 10;
  Open();
  const SchemaPtr schema = MakeTable();
  for (int round = 0; round < 20; ++round) Fill(schema, 500);
  const auto count = [&] {
    return Await<Result<std::vector<RegionInfo>>>(
               executor_.get(), [&](auto done) { cluster_->ListRegions(schema->name, {}, done); })
        ->size();
  };
  while (cluster_->pending_work() > 0) Sleep(executor_.get(), std::chrono::milliseconds(1));
  EXPECT_EQ(count(), 1u);
  // Growth is; a half that is still too large is split again, at the latest by a write to it. (Ends
  // at the time limit, or well.)
  Fill(schema, 20000);
  while (count() < 4) Fill(schema, 20000);
}

// For a thread of this process, by the number that the system gave it.
bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state == "S";
}

TEST_F(EmbeddedClusterTest, ASchemaThatChangesWhileARegionIsOpenedIsFollowed) {
  const SchemaPtr schema = MakeTable();
  const pb::RegionRecord record = cluster_->catalog().Regions(schema->id).front();
  const auto owner = cluster_->LocalServer(record.server());
  const auto other = cluster_->LocalServer(record.server() == "rs1" ? "rs2" : "rs1");
  const auto region = owner->FindRegion(record.id());
  ASSERT_NE(region, nullptr);
  // The thread that opens it has read the schema when it waits for the fence.
  auto excluded = region->fence().Exclude();
  std::atomic<pid_t> opening = 0;
  std::thread opens([&] {
    opening = gettid();
    other->OpenRegion(record, Duration(0));
  });
  while (opening == 0 || !IsAsleep(opening)) std::this_thread::yield();
  TableSchema changed = *schema;
  ++changed.version;
  changed.columns.push_back({.name = "later", .type = Type::kText});
  const Status committed = cluster_->catalog().Commit({.put_tables = {changed}});
  EXPECT_TRUE(committed.ok()) << committed;
  excluded.unlock();
  opens.join();
  const auto opened = other->FindRegion(record.id());
  ASSERT_NE(opened, nullptr);
  // The region follows in a task that runs alone, on another thread if one runs already.
  std::promise<void> followed;
  ASSERT_TRUE(opened->Quiesce([&followed] { followed.set_value(); }));
  followed.get_future().wait();
  EXPECT_EQ(opened->schema()->version, changed.version);
}

}  // namespace
}  // namespace tamis
