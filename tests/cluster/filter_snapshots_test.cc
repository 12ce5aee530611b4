// Filters that are saved when a store is closed cleanly, and believed only then.

#include "tamis/rocks/filter_snapshots.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tamis/base/coding.h"
#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"

namespace tamis {
namespace {

constexpr int kRows = 3000;

class FilterSnapshotsTest : public ::testing::Test {
 protected:
  FilterSnapshotsTest() {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tamis_filter_snapshots_test." + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    Open();
    Fill();
  }
  ~FilterSnapshotsTest() override {
    Close();
    std::filesystem::remove_all(directory_);
    std::filesystem::remove_all(Copy());
  }

  void Open() { Open(directory_); }
  void Open(const std::filesystem::path& directory) {
    executor_ = std::make_unique<ThreadExecutor>(4);
    RocksCluster::Options options;
    options.store.directory = directory;
    options.servers = 4;
    auto cluster = RocksCluster::Open(options, executor_.get());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = std::move(*cluster);
    restored_ = Count();
    engine_ = std::make_unique<Engine>(cluster_.get(), executor_.get(), Engine::Options{});
  }
  void Close() {
    if (!executor_) return;
    executor_->Stop();
    engine_.reset();
    cluster_.reset();
    executor_.reset();
  }
  std::filesystem::path Copy() const { return directory_.string() + ".copy"; }

  // How many filters are as they were saved.
  int Count() const {
    int restored = 0;
    for (int i = 1; i <= 4; ++i) {
      for (const auto& region : cluster_->LocalServer("rs" + std::to_string(i))->Regions()) {
        const auto indexes = region->indexes();
        for (const auto& [id, state] : *indexes) restored += state.filter->as_restored();
      }
    }
    return restored;
  }

  static Row MakeRow(int i) {
    return {Value::Int64(i), Value::Text("group " + std::to_string(i / 10)), Value::Int64(i % 7)};
  }

  void Fill() {
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "grp", .type = Type::kText},
                      {.name = "n", .type = Type::kInt64}};
    schema.key = {0};
    schema.indexes = {{.name = "grp", .columns = {1}, .expected_values = 100},
                      {.name = "n", .columns = {2}, .expected_values = 100}};
    const auto made = Await<Result<TableSchema>>(
        executor_.get(), [&](auto done) { cluster_->CreateTable(schema, done); });
    ASSERT_TRUE(made.ok()) << made.status();
    std::vector<Write> writes;
    for (int i = 0; i < kRows; ++i) writes.push_back({.row = MakeRow(i)});
    Apply(std::move(writes));
    for (int round = 0; round < 2; ++round) {
      for (const auto& region : cluster_->catalog().Regions(made->id)) {
        const Status split = Await<Status>(executor_.get(), [&](auto done) {
          cluster_->SplitRegion(RegionId(region.id()), "", done);
        });
        ASSERT_TRUE(split.ok()) << split;
      }
    }
    // The coordinator may route by the state before the splits; the daughters are to be complete.
    AwaitPendingWork();
  }
  void AwaitPendingWork() {
    while (cluster_->pending_work() > 0) Sleep(executor_.get(), std::chrono::milliseconds(1));
  }

  SchemaPtr Table() { return *engine_->Table("t"); }

  void Apply(std::vector<Write> writes) {
    for (const Status& status : engine_->Apply(Table(), std::move(writes)))
      ASSERT_TRUE(status.ok()) << status;
  }

  size_t Find(int group, Explain* explain = nullptr) {
    SearchOptions options;
    options.predicate =
        Predicate::Compare(1, Predicate::Op::kEq, Value::Text("group " + std::to_string(group)));
    RowStream stream = engine_->Search(Table(), std::move(options));
    size_t rows = 0;
    while (true) {
      auto row = stream.Next();
      EXPECT_TRUE(row.ok()) << row.status();
      if (!row.ok() || !row->has_value()) break;
      ++rows;
    }
    if (explain != nullptr) *explain = stream.explain();
    return rows;
  }

  void ExpectClean() {
    ASSERT_TRUE(engine_->WaitUntilRouted(*Table(), std::chrono::seconds(60)));
    const auto report =
        Await<Result<CheckReport>>(executor_.get(), [&](auto done) { cluster_->Check("t", done); });
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok()) << report->ToString();
    EXPECT_EQ(report->filter_lookups, 2 * report->rows) << report->ToString();
    for (const int group : {0, 7, 150, 299}) EXPECT_EQ(Find(group), 10u);
  }

  // Like Open after a clean end, with a change of the closed store in between.
  void Tamper(const std::function<void(Store*)>& tamper) {
    Close();
    auto store = Store::Open({.directory = directory_});
    ASSERT_TRUE(store.ok()) << store.status();
    tamper(store->get());
    store->reset();
    Open();
  }

  std::filesystem::path directory_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<Engine> engine_;
  int restored_ = 0;
};

TEST_F(FilterSnapshotsTest, AfterACleanEndNothingIsCountedAndTheFirstQueryIsRouted) {
  for (int again = 0; again < 3; ++again) {
    Close();
    Open();
    EXPECT_EQ(restored_, 8);
    EXPECT_EQ(cluster_->pending_work(), 0u);
    ASSERT_TRUE(engine_->WaitUntilRouted(*Table(), std::chrono::seconds(60)));
    Explain explain;
    EXPECT_EQ(Find(7, &explain), 10u);
    EXPECT_EQ(explain.servers_asked, 1u) << explain.ToText();
    ExpectClean();
  }
}

TEST_F(FilterSnapshotsTest, LaterWriteIsInTheNextSnapshot) {
  Close();
  Open();
  std::vector<Write> writes;
  for (int i = 0; i < 100; ++i) writes.push_back({.kind = Write::Kind::kDelete, .row = MakeRow(i)});
  for (int i = 0; i < 100; ++i) {
    writes.push_back({.row = {Value::Int64(kRows + i), Value::Text("group 0"), Value::Int64(1)}});
  }
  Apply(std::move(writes));
  EXPECT_LT(Count(), 8);
  Close();
  Open();
  EXPECT_EQ(restored_, 8);
  EXPECT_EQ(Find(0), 100u);
  EXPECT_EQ(Find(1), 0u);
  Explain explain;
  ASSERT_TRUE(engine_->WaitUntilRouted(*Table(), std::chrono::seconds(60)));
  EXPECT_EQ(Find(1, &explain), 0u);
  EXPECT_EQ(explain.regions_asked, explain.false_positive_regions);  // deleted values are uncounted
}

TEST_F(FilterSnapshotsTest, AfterACrashNothingIsBelieved) {
  Close();
  Open();
  ASSERT_EQ(restored_, 8);
  // The state after a kill -9: the files as they are while the store is open.
  Apply({{.row = {Value::Int64(5), Value::Text("new"), Value::Int64(1)}}});
  std::filesystem::copy(directory_, Copy());
  Close();
  Open(Copy());
  EXPECT_EQ(restored_, 0);
  EXPECT_EQ(Find(0), 9u);
  EXPECT_EQ(Find(7), 10u);
  ASSERT_TRUE(engine_->WaitUntilRouted(*Table(), std::chrono::seconds(60)));
  AwaitPendingWork();  // a filter that is being counted is not saved
  Close();
  Open(Copy());
  EXPECT_EQ(restored_, 8);
}

TEST_F(FilterSnapshotsTest, AfterAnOpeningThatCrashedNothingIsBelieved) {
  Close();
  Open();
  std::filesystem::copy(directory_, Copy());  // nothing but the opening itself was written
  Close();
  Open(Copy());
  EXPECT_EQ(restored_, 0);
  ExpectClean();
}

TEST_F(FilterSnapshotsTest, ASnapshotOfAnotherSequenceIsNotUsed) {
  Tamper([](Store* store) {
    rocksdb::WriteBatch batch;
    batch.Put(store->meta(), "X", "");
    ASSERT_TRUE(store->Write(&batch).ok());
  });
  EXPECT_EQ(restored_, 0);
  ExpectClean();
}

TEST_F(FilterSnapshotsTest, ADamagedSnapshotIsCountedAnewTheOthersAreNot) {
  Tamper([](Store* store) {
    std::unique_ptr<rocksdb::Iterator> it(
        store->db()->NewIterator(rocksdb::ReadOptions(), store->filters()));
    it->Seek("S");
    ASSERT_TRUE(it->Valid());
    std::string bytes = it->value().ToString();
    bytes[bytes.size() / 2] ^= 1;
    pb::SnapshotList list;
    std::string list_bytes;
    ASSERT_TRUE(store->db()->Get(rocksdb::ReadOptions(), store->filters(), "L", &list_bytes).ok());
    ASSERT_TRUE(list.ParseFromString(list_bytes));
    rocksdb::WriteBatch batch;
    batch.Put(store->filters(), it->key(), bytes);
    list.set_sequence(store->db()->GetLatestSequenceNumber() + 2);
    batch.Put(store->filters(), "L", list.SerializeAsString());
    ASSERT_TRUE(store->db()->Write(rocksdb::WriteOptions(), &batch).ok());
  });
  EXPECT_EQ(restored_, 7);
  ExpectClean();
}

TEST_F(FilterSnapshotsTest, AMovedOrKilledServersRegionIsNotRestoredFromAnOldSnapshot) {
  Close();
  Open();
  Apply({{.row = {Value::Int64(5), Value::Text("new"), Value::Int64(1)}}});
  for (const auto& region : cluster_->catalog().Regions(Table()->id)) {
    const std::string target = region.server() == "rs1" ? "rs2" : "rs1";
    const Status moved = Await<Status>(executor_.get(), [&](auto done) {
      cluster_->MoveRegion(RegionId(region.id()), target, done);
    });
    ASSERT_TRUE(moved.ok()) << moved;
  }
  EXPECT_EQ(Count(), 0);
  ASSERT_TRUE(cluster_->Kill("rs1").ok());
  EXPECT_EQ(Find(7), 10u);
  Close();
  Open();
  EXPECT_EQ(Find(0), 9u);
  EXPECT_EQ(Find(150), 10u);
}

TEST_F(FilterSnapshotsTest, AnIndexThatIsMadeAnewIsCountedAnew) {
  for (const bool drop : {true, false}) {
    const auto changed = Await<Result<TableSchema>>(executor_.get(), [&](auto done) {
      if (drop) {
        cluster_->DropIndex("t", "grp", done);
      } else {
        cluster_->CreateIndex("t", {.name = "grp", .columns = {1}, .expected_values = 500}, done);
      }
    });
    ASSERT_TRUE(changed.ok()) << changed.status();
    engine_->ForgetTable("t");
  }
  ExpectClean();
  Close();
  Open();
  EXPECT_EQ(restored_, 8);
  ExpectClean();
}

}  // namespace
}  // namespace tamis
