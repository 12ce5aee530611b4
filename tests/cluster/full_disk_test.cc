// A disk that is full for some time, whatever is being written when that begins: nothing stays
// undone once there is room. TAMIS_BACKGROUND_COMPACTIONS=1: with RocksDB's own threads at work.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/cluster/await_index.h"
#include "tamis/cluster/index_wait.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tests/cluster/failing_env.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kRows = 40;

// Two servers, and a table of two regions whose index is half built.
class HalfBuilt {
 public:
  HalfBuilt() {
    const Status opened = Open();
    EXPECT_TRUE(opened.ok()) << opened;
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "n", .type = Type::kInt64}};
    schema.key = {0};
    const auto made = Await<Result<TableSchema>>(
        &executor, [&](auto done) { cluster_->CreateTable(schema, done); });
    EXPECT_TRUE(made.ok()) << made.status();
    executor.RunFor(1s);
    EXPECT_TRUE(Put(0).ok());
    EXPECT_TRUE(Change([&](auto done) {
                  cluster_->SplitRegion(RegionId(Regions().front().id()), "", done);
                }).ok());
    executor.RunFor(1s);
    const auto index = Await<Result<TableSchema>>(&executor, [&](auto done) {
      cluster_->CreateIndex("t", {.name = "n", .columns = {1}, .expected_values = 100}, done);
    });
    EXPECT_TRUE(index.ok()) << index.status();
    engine_->ForgetTable("t");
    executor.RunFor(10ms);
  }
  ~HalfBuilt() { Close(); }

  Status Open() {
    RocksCluster::Options options;
    options.store.directory = "/store";
    options.store.env = &env_;
    // On threads of their own; with them another interleaving each time.
    options.store.background_compactions = std::getenv("TAMIS_BACKGROUND_COMPACTIONS") != nullptr;
    options.servers = 2;
    options.balance = false;
    options.server.build_rows = 1;
    TAMIS_ASSIGN_OR_RETURN(cluster_, RocksCluster::Open(options, &executor));
    engine_ = std::make_unique<Engine>(cluster_.get(), &executor, Engine::Options{});
    return Status::Ok();
  }
  void Close() {
    executor.Clear();
    engine_.reset();
    cluster_.reset();
  }

  // Every row has another value then.
  Status Put(int64_t value) {
    std::vector<Write> writes;
    for (int64_t i = 0; i < kRows; ++i) {
      writes.push_back({.row = {Value::Int64(i), Value::Int64(value + i)}});
    }
    for (const Status& status : engine_->Apply(*engine_->Table("t"), std::move(writes))) {
      if (!status.ok()) return status;
    }
    return Status::Ok();
  }
  Status Search() {
    RowStream stream = engine_->Search(*engine_->Table("t"), {});
    for (;;) {
      auto row = stream.Next();
      if (!row.ok()) return row.status();
      if (!row->has_value()) return Status::Ok();
    }
  }
  std::vector<pb::RegionRecord> Regions() { return cluster_->catalog().Regions(); }
  Status Change(const std::function<void(DoneCallback)>& change) {
    return Await<Status>(&executor, [&](auto done) { change(done); });
  }
  RocksCluster& cluster() { return *cluster_; }
  FailingEnv& disk() { return env_; }

  void ExpectAllIsWell() {
    const Status put = Put(1000);
    EXPECT_TRUE(put.ok()) << put;
    ExpectNoEntryIsMissing();
  }
  void ExpectNoEntryIsMissing() {
    const auto progress = Await<Result<IndexProgress>>(
        &executor, [&](auto done) { cluster_->GetIndexProgress("t", "n", done); });
    ASSERT_TRUE(progress.ok()) << progress.status();
    EXPECT_EQ(progress->complete, progress->regions);
    EXPECT_EQ(progress->regions, Regions().size());
    const auto check =
        Await<Result<CheckReport>>(&executor, [&](auto done) { cluster_->Check("t", done); });
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_TRUE(check->ok()) << check->ToString();
    EXPECT_EQ(check->rows, static_cast<uint64_t>(kRows));
  }

  SimExecutor executor{1, 1ms};

 private:
  FailingEnv env_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<Engine> engine_;
};

// Begins `change` with room for so and so many pieces, more each time, until there was enough.
void FillUpDuring(const std::function<void(HalfBuilt*, DoneCallback)>& change,
                  Duration before = {}) {
  int failed = 0;
  for (uint64_t room = 0; room < 200; ++room) {
    SCOPED_TRACE("room for " + std::to_string(room) + " pieces");
    HalfBuilt store;
    ASSERT_FALSE(::testing::Test::HasFailure());
    store.executor.RunFor(before);
    store.disk().FillUpAfter(room);
    const Status changed = store.Change([&](DoneCallback done) { change(&store, done); });
    store.executor.RunFor(3s);
    const bool filled = store.disk().full();
    store.disk().MakeRoom();
    store.executor.RunFor(30s);
    store.ExpectAllIsWell();
    if (::testing::Test::HasFailure()) return;
    failed += changed.ok() ? 0 : 1;
    if (!filled) break;
  }
  EXPECT_GT(failed, 0);
}

TEST(FullDiskTest, RegionIsOpenAfterAMoveOnAFullDisk) {
  FillUpDuring([](HalfBuilt* store, const DoneCallback& done) {
    const pb::RegionRecord region = store->Regions().back();
    store->cluster().MoveRegion(RegionId(region.id()), region.server() == "rs1" ? "rs2" : "rs1",
                                done);
  });
}

TEST(FullDiskTest, RegionsAreOpenAfterAMergeOnAFullDisk) {
  FillUpDuring([](HalfBuilt* store, const DoneCallback& done) {
    store->cluster().MergeRegion(RegionId(store->Regions().front().id()), done);
  });
}

TEST(FullDiskTest, BothHalvesAreOpenAfterASplitOnAFullDisk) {
  FillUpDuring([](HalfBuilt* store, const DoneCallback& done) {
    store->cluster().SplitRegion(RegionId(store->Regions().front().id()), "", done);
  });
}

// With time for the index to be complete, so that its entries are copied.
TEST(FullDiskTest, BothHalvesAreOpenAfterASplitThatCopiesEntriesOnAFullDisk) {
  FillUpDuring(
      [](HalfBuilt* store, const DoneCallback& done) {
        store->cluster().SplitRegion(RegionId(store->Regions().front().id()), "", done);
      },
      30s);
}

TEST(FullDiskTest, ARegionWhoseEntriesCannotBeCopiedIsSplitAndItsEntriesAreMade) {
  HalfBuilt store;
  store.executor.RunFor(30s);
  const size_t regions = store.Regions().size();
  store.disk().set_failing_copies(true);
  const Status split = store.Change([&](DoneCallback done) {
    store.cluster().SplitRegion(RegionId(store.Regions().front().id()), "", done);
  });
  EXPECT_TRUE(split.ok()) << split;
  EXPECT_EQ(store.Regions().size(), regions + 1);
  store.disk().set_failing_copies(false);
  store.executor.RunFor(30s);
  store.ExpectNoEntryIsMissing();
}

// A store that can be opened answers, however full its disk is.
TEST(FullDiskTest, StoreWhoseRegionsCannotBeAssignedIsNotOpened) {
  int unassigned = 0;
  bool was_opened = false;
  for (uint64_t room = 0; room < 200; ++room) {
    SCOPED_TRACE("room for " + std::to_string(room) + " pieces");
    HalfBuilt store;
    store.Close();
    ASSERT_FALSE(::testing::Test::HasFailure());
    store.disk().FillUpAfter(room);
    const Status opened = store.Open();
    if (opened.ok()) {
      const Status found = store.Search();
      EXPECT_TRUE(found.ok()) << found;
      was_opened = true;
    } else {
      EXPECT_EQ(opened.code(), StatusCode::kResourceExhausted) << opened;
      EXPECT_NE(opened.message().find("open it with --read-only"), std::string::npos) << opened;
      if (opened.message().find("cannot give the regions") != std::string::npos) ++unassigned;
      store.executor.RunFor(10s);  // nothing of the cluster is left
    }
    if (::testing::Test::HasFailure() || !store.disk().full()) break;
  }
  EXPECT_GT(unassigned, 0);
  EXPECT_TRUE(was_opened);
}

// ---- Waiting for an index

class AwaitIndexTest : public testing::Test {
 protected:
  Result<IndexProgress> Await(Duration time = std::chrono::hours(1)) {
    return AwaitIndex(&store_.cluster(), &store_.executor,
                      {.deadline = store_.executor.Now() + time}, "t", "n",
                      [this](const IndexProgress& progress) { shown_.push_back(progress); });
  }

  HalfBuilt store_;
  std::vector<IndexProgress> shown_;
};

TEST_F(AwaitIndexTest, WaitEndsWithTheReasonAndTheBuildGoesOn) {
  store_.disk().FillUpAfter(0);
  const Time before = store_.executor.Now();
  const auto failed = Await();
  EXPECT_EQ(failed.status().code(), StatusCode::kResourceExhausted) << failed.status();
  for (const char* words : {"index \"n\" of table \"t\"", "of 2 regions ready; region ",
                            " on server rs", " attempts): ", "the disk is full: make room",
                            "the servers go on trying", "tamis index wait t n"}) {
    EXPECT_NE(failed.status().message().find(words), std::string::npos) << failed.status();
  }
  const Duration waited = store_.executor.Now() - before;
  EXPECT_GE(waited, IndexWait::kPatience);
  EXPECT_LT(waited, IndexWait::kPatience + 10s);
  // It was shown when it appeared, not with each attempt.
  ASSERT_EQ(shown_.size(), 1u);
  ASSERT_TRUE(shown_.front().failure.has_value());
  EXPECT_EQ(shown_.front().failure->reason.code(), StatusCode::kResourceExhausted);
  store_.disk().MakeRoom();
  const auto ready = Await();
  ASSERT_TRUE(ready.ok()) << ready.status();
  EXPECT_EQ(ready->complete, ready->regions);
  EXPECT_FALSE(ready->failure.has_value());
  store_.ExpectAllIsWell();
}

TEST_F(AwaitIndexTest, RoomThatIsMadeInTimeLetsTheWaitGoOn) {
  store_.disk().FillUpAfter(0);
  store_.executor.PostAfter(50s, [this] { store_.disk().MakeRoom(); });
  const auto ready = Await();
  EXPECT_TRUE(ready.ok()) << ready.status();
  EXPECT_EQ(shown_.size(), 1u);
}

TEST_F(AwaitIndexTest, WaitThatIsOverBeforeTellsTheFailureToo) {
  store_.disk().FillUpAfter(0);
  const auto failed = Await(10s);
  EXPECT_EQ(failed.status().code(), StatusCode::kDeadlineExceeded) << failed.status();
  EXPECT_NE(failed.status().message().find("the disk is full"), std::string::npos)
      << failed.status();
}

TEST_F(AwaitIndexTest, ServersThatAreDownForSomeTimeDoNotEndTheWait) {
  for (const char* server : {"rs1", "rs2"}) {
    EXPECT_TRUE(store_.cluster().Kill(server).ok());
    store_.executor.PostAfter(IndexWait::kOutage - 10s, [this, server] {
      EXPECT_TRUE(store_.cluster().Resume(server).ok());
    });
  }
  const auto ready = Await();
  EXPECT_TRUE(ready.ok()) << ready.status();
  ASSERT_EQ(shown_.size(), 1u);
  EXPECT_EQ(shown_.front().failure->reason.code(), StatusCode::kUnavailable);
}

TEST_F(AwaitIndexTest, ServersThatStayDownEndTheWait) {
  for (const char* server : {"rs1", "rs2"}) EXPECT_TRUE(store_.cluster().Kill(server).ok());
  const Time before = store_.executor.Now();
  const auto failed = Await();
  EXPECT_EQ(failed.status().code(), StatusCode::kUnavailable) << failed.status();
  EXPECT_GE(store_.executor.Now() - before, IndexWait::kOutage);
}

// A build that did not come to its end left entries, which are removed first.
TEST_F(AwaitIndexTest, EntriesThatCannotBeRemovedAreTold) {
  const uint64_t half_built = store_.Regions().front().id();  // the other one has no entries yet
  store_.Close();
  // Opening the catalog takes some room.
  Status opened;
  for (uint64_t room = 0; room < 200; ++room) {
    store_.disk().FillUpAfter(room);
    if (opened = store_.Open(); opened.ok()) break;
  }
  ASSERT_TRUE(opened.ok()) << opened;
  store_.disk().FillUpAfter(0);
  const auto failed = Await();
  EXPECT_EQ(failed.status().code(), StatusCode::kResourceExhausted) << failed.status();
  ASSERT_FALSE(shown_.empty());
  EXPECT_EQ(shown_.back().failure->region, RegionId(half_built));
}

// Otherwise a statement waits until its time is over, without a reason.
TEST(FullDiskTest, RequestsOfRegionsThatCannotBeAssignedSayWhy) {
  HalfBuilt store;
  const uint64_t moved = store.Regions().back().id();
  EXPECT_TRUE(
      store.Change([&](auto done) { store.cluster().MoveRegion(RegionId(moved), "rs2", done); })
          .ok());
  EXPECT_TRUE(store
                  .Change([&](auto done) {
                    store.cluster().MoveRegion(RegionId(store.Regions().front().id()), "rs1", done);
                  })
                  .ok());
  store.executor.RunFor(3s);
  store.disk().FillUpAfter(0);
  EXPECT_TRUE(store.cluster().Expel("rs1").ok());
  store.executor.RunFor(3s);
  for (const Status& status : {store.Search(), store.Put(1000)}) {
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    EXPECT_NE(status.message().find("the disk is full"), std::string::npos) << status;
  }
  // The list of regions is there to be looked at. The regions of rs2 are served as before.
  const auto regions = Await<Result<std::vector<RegionInfo>>>(
      &store.executor, [&](auto done) { store.cluster().ListRegions("t", {}, done); });
  ASSERT_TRUE(regions.ok()) << regions.status();
  EXPECT_EQ(regions->size(), store.Regions().size());
  for (const RegionInfo& region : *regions) {
    EXPECT_EQ(region.unserved.ok(), region.id == RegionId(moved)) << region.unserved;
  }
  store.disk().MakeRoom();
  store.executor.RunFor(30s);
  const Status found = store.Search();
  EXPECT_TRUE(found.ok()) << found;
  store.ExpectAllIsWell();
}

// Its record may be in the log, and then it is there when the log is read again.
TEST(FailedWriteTest, WriteThatTheStoreFailsIsUnknown) {
  for (const bool full : {false, true}) {
    HalfBuilt store;
    full ? store.disk().FillUpAfter(0) : store.disk().set_failing(true);
    const Status put = store.Put(1000);
    EXPECT_EQ(put.code(), StatusCode::kDeadlineExceeded) << put;
    EXPECT_NE(put.message().find("may have been carried out"), std::string::npos) << put;
    EXPECT_NE(put.message().find(full ? "the disk is full" : "takes no more"), std::string::npos)
        << put;
  }
}

}  // namespace
}  // namespace tamis
