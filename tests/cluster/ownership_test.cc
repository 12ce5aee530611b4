// An expelled server that does not know of it, and the next owners of its regions: which of them
// may answer, grant leases and acknowledge, and when. Each rule is also switched off.

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTerm = 1500ms;  // the term of a proof of ownership

class OwnershipTest : public ::testing::Test {
 protected:
  OwnershipTest() {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tamis_ownership_test." + std::to_string(::getpid()));
  }
  ~OwnershipTest() override { Close(); }

  void Close() {
    executor_.Clear();
    held_.clear();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Three servers, of which one owns the only region of a table with an index on its column n.
  void Open(Faults faults = {}) {
    Close();
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 3;
    options.balance = false;
    options.session_timeout = 1h;  // a server is expelled only by order
    options.server.inline_steps = false;
    options.server.streams_by_cost = false;  // few rows are scanned, and the rows are everybody's
    options.server.fence_searches = fence_searches_;
    options.server.build_rows = build_rows_;
    options.server.during_search = [this] {
      if (during_search_) std::exchange(during_search_, nullptr)();
    };
    options.server.proof_term = kTerm;
    options.server.faults = faults;
    options.heartbeat_link = [this](const std::string& server, std::function<void()> deliver) {
      if (server != cut_) return deliver();
      held_.push_back(std::move(deliver));
    };
    cut_.clear();
    auto cluster = RocksCluster::Open(options, &executor_);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = std::move(*cluster);
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "n", .type = Type::kInt64}};
    schema.key = {0};
    schema.indexes = {{.name = "n", .columns = {1}, .expected_values = 100}};
    const auto made = Await<Result<TableSchema>>(
        &executor_, [&](auto done) { cluster_->CreateTable(schema, done); });
    ASSERT_TRUE(made.ok()) << made.status();
    table_ = *made;
    executor_.RunFor(1s);
    first_ = Region(0);
  }

  // The owner is expelled, and hears nothing of it. It proved its ownership less than a heartbeat
  // ago.
  void Expel() {
    cut_ = first_.server();
    expelled_ = executor_.Now();
    ASSERT_TRUE(cluster_->Expel(first_.server()).ok());
    executor_.RunFor(5ms);
    ASSERT_NE(Region(0).server(), first_.server());
  }

  pb::RegionRecord Region(size_t i) const { return cluster_->catalog().Regions(table_.id)[i]; }
  std::string Key(int64_t id) const { return EncodeKey(table_, {Value::Int64(id), Value()}); }
  // A server that owns nothing and has not been expelled.
  std::string Idle() const {
    for (const char* name : {"rs1", "rs2", "rs3"}) {
      if (name != first_.server() && name != Region(0).server()) return name;
    }
    return "";
  }

  pb::MutateRequest PutOf(const pb::RegionRecord& region, int64_t id, int64_t n) const {
    const Row row{Value::Int64(id), Value::Int64(n)};
    pb::MutateRequest request;
    request.set_table_id(table_.id);
    request.set_schema_version(table_.version);
    request.set_timeout_ns(60'000'000'000);
    auto* mutations = request.add_regions();
    mutations->set_region_id(region.id());
    mutations->set_epoch(region.epoch());
    auto* mutation = mutations->add_mutations();
    mutation->set_key(EncodeKey(table_, row));
    mutation->set_row(EncodeRow(table_, row));
    return request;
  }

  // How long a put to the region takes until it is acknowledged.
  Duration AcknowledgedAfter(const pb::RegionRecord& region, int64_t id, int64_t n) {
    const pb::MutateRequest request = PutOf(region, id, n);
    const Time begin = executor_.Now();
    const auto reply = Await<Result<pb::MutateReply>>(
        &executor_, [&](auto done) { cluster_->Server(region.server())->Mutate(request, done); });
    EXPECT_TRUE(reply.ok() && !reply->regions(0).has_error() &&
                reply->regions(0).results(0).code() == 0)
        << (reply.ok() ? reply->ShortDebugString() : reply.status().ToString());
    return executor_.Now() - begin;
  }

  // The rows that the server of the region finds by the index; nullopt when it does not answer.
  std::optional<int> FoundBy(const pb::RegionRecord& region, int64_t n) {
    pb::SearchRequest request;
    request.set_table_id(table_.id);
    request.set_schema_version(table_.version);
    auto* range = request.add_ranges();
    range->set_region_id(region.id());
    range->set_epoch(region.epoch());
    range->set_start(region.start());
    range->set_end(region.end());
    auto* branch = request.add_branches();
    branch->set_predicate(
        SerializePredicate(Predicate::Compare(1, Predicate::Op::kEq, Value::Int64(n))));
    auto* stream = branch->add_streams();
    stream->set_index_id(table_.indexes[0].id);
    stream->set_equality(true);
    const std::string values =
        IndexEntry::Of(table_, table_.indexes[0], {Value::Int64(0), Value::Int64(n)})->values;
    stream->add_ranges()->set_low(values);
    stream->mutable_ranges(0)->set_high(PrefixEnd(values));
    const auto reply = Await<Result<pb::SearchReply>>(
        &executor_, [&](auto done) { cluster_->Server(region.server())->Search(request, done); });
    if (!reply.ok() || reply->results(0).has_error()) return std::nullopt;
    return reply->results(0).rows_size();
  }

  Duration LeaseOf(const std::string& server) {
    const auto reply = Await<Result<pb::PollReply>>(&executor_, [&](auto done) {
      pb::PollRequest request;
      request.set_coordinator(++coordinator_);  // a new one: it lags behind nothing
      cluster_->Server(server)->Poll(request, done);
    });
    EXPECT_TRUE(reply.ok());
    return Duration(reply->lease_ns());
  }

  // The master's answer comes when it has decided; the server opens the region a moment later.
  Status Opened(Status status) {
    executor_.RunFor(5ms);
    return status;
  }
  Status Move(const pb::RegionRecord& region, const std::string& server) {
    return Opened(Await<Status>(
        &executor_, [&](auto done) { cluster_->MoveRegion(RegionId(region.id()), server, done); }));
  }
  Status Split(const pb::RegionRecord& region, int64_t id) {
    return Opened(Await<Status>(&executor_, [&](auto done) {
      cluster_->SplitRegion(RegionId(region.id()), Key(id), done);
    }));
  }

  std::shared_ptr<IndexFilter> Filter(const pb::RegionRecord& region) {
    const auto opened = cluster_->LocalServer(region.server())->FindRegion(region.id());
    return opened ? opened->filter(table_.indexes[0].id) : nullptr;
  }
  bool HasEntries(const pb::RegionRecord& region) {
    return cluster_->LocalServer(region.server())
        ->FindRegion(region.id())
        ->IsEntriesComplete(table_.indexes[0].id);
  }

  std::filesystem::path directory_;
  bool fence_searches_ = false;  // false: as if the store had no fence for reads
  uint64_t build_rows_ = 256;
  std::function<void()> during_search_;  // runs while the next search goes on
  SimExecutor executor_{1, 1ms};
  std::string cut_;                          // its heartbeats do not arrive
  std::vector<std::function<void()>> held_;  // they
  std::unique_ptr<RocksCluster> cluster_;
  TableSchema table_;
  pb::RegionRecord first_;  // the region as its first owner has it
  Time expelled_{};
  uint64_t coordinator_ = 0;
};

TEST_F(OwnershipTest, NoLeaseLivesBeyondTheProof) {
  for (const bool fault : {false, true}) {
    Open({.lease_beyond_proof = fault});
    EXPECT_EQ(LeaseOf(first_.server()), 1s);
    Expel();
    for (const Duration passed : {1000ms, 1300ms, 1600ms}) {
      executor_.RunFor(expelled_ + passed - executor_.Now());
      const Duration lease = LeaseOf(first_.server());
      EXPECT_EQ(lease > std::max(Duration(0), kTerm - passed), fault);
    }
  }
}

// Its filters know nothing of what is written elsewhere: that is no fault of an index.
TEST_F(OwnershipTest, AFormerOwnerIsNotChecked) {
  Open();
  Expel();
  AcknowledgedAfter(Region(0), 7, 5);
  cut_.clear();  // it comes back, and closes its region when it learns that it was expelled
  int checked = 0;
  for (int i = 0; i < 1000 && checked < 10; ++i) {
    const auto report =
        Await<Result<CheckReport>>(&executor_, [&](auto done) { cluster_->Check("t", done); });
    if (report.ok()) {
      EXPECT_TRUE(report->ok()) << report->ToString();
      EXPECT_EQ(report->rows, 1u) << i;
      ++checked;
    } else {
      EXPECT_EQ(report.status().code(), StatusCode::kUnavailable) << report.status();
    }
    executor_.RunFor(5ms);
  }
  EXPECT_EQ(checked, 10);
}

TEST_F(OwnershipTest, NoSearchIsAnsweredBeyondTheProof) {
  for (const bool fault : {false, true}) {
    Open({.search_beyond_proof = fault});
    EXPECT_LT(AcknowledgedAfter(first_, 1, 5), 50ms);
    Expel();
    EXPECT_EQ(FoundBy(first_, 5), 1) << "it is sure that nothing else is acknowledged yet";
    ASSERT_TRUE(Split(Region(0), 5).ok());
    AcknowledgedAfter(Region(1), 7, 5);  // an entry that the first owner does not look for
    EXPECT_EQ(FoundBy(Region(1), 5), 1);
    EXPECT_EQ(FoundBy(first_, 5), fault ? std::optional(1) : std::nullopt);
  }
}

TEST_F(OwnershipTest, AProofIsAsOfItsBeginning) {
  for (const bool fault : {false, true}) {
    Open({.proof_as_of_answer = fault});
    cut_ = first_.server();
    executor_.RunFor(400ms);
    ASSERT_FALSE(held_.empty());
    ASSERT_TRUE(cluster_->Pause(first_.server()).ok());
    std::exchange(held_, {}).front()();  // its answer waits for the server
    Expel();
    executor_.RunFor(2s);
    EXPECT_LT(AcknowledgedAfter(Region(0), 1, 5), 50ms);
    ASSERT_TRUE(cluster_->Resume(first_.server()).ok());
    executor_.RunFor(5ms);
    EXPECT_EQ(FoundBy(first_, 5).has_value(), fault);
    EXPECT_EQ(LeaseOf(first_.server()) > Duration(0), fault);
  }
}

// The clock goes on while the machine sleeps, and what was proved before is worth nothing after.
TEST_F(OwnershipTest, AJumpOfTheClockEndsTheProof) {
  Open();
  cut_ = first_.server();
  EXPECT_EQ(FoundBy(first_, 5), 0);
  executor_.Jump(kTerm);
  EXPECT_EQ(FoundBy(first_, 5), std::nullopt);
  EXPECT_EQ(LeaseOf(first_.server()), Duration(0));
  cut_.clear();
  executor_.RunFor(400ms);
  EXPECT_EQ(FoundBy(first_, 5), 0);
  EXPECT_EQ(LeaseOf(first_.server()), 1s);
}

TEST_F(OwnershipTest, AcknowledgesNothingForATermAfterAnUncleanClose) {
  for (const bool fault : {false, true}) {
    Open({.no_open_wait = fault});
    Expel();
    AcknowledgedAfter(Region(0), 1, 5);
    EXPECT_EQ(executor_.Now() - expelled_ > kTerm, !fault);
  }
}

TEST_F(OwnershipTest, CloseWithinTheOpeningWaitIsNotClean) {
  for (const bool fault : {false, true}) {
    Open({.early_close_in_order = fault});
    Expel();
    executor_.RunFor(1s);
    const Time moved = executor_.Now();
    ASSERT_TRUE(Move(Region(0), Idle()).ok());
    AcknowledgedAfter(Region(0), 1, 5);
    EXPECT_EQ(executor_.Now() - moved > kTerm, !fault);
  }
}

TEST_F(OwnershipTest, CloseAfterTheOpeningWaitIsClean) {
  Open();
  Expel();
  executor_.RunFor(2s);
  ASSERT_TRUE(Move(Region(0), Idle()).ok());
  EXPECT_LT(AcknowledgedAfter(Region(0), 1, 5), 50ms);
}

TEST_F(OwnershipTest, TheDaughtersOfARegionThatWaitsWaitToo) {
  Open();
  Expel();
  ASSERT_TRUE(Split(Region(0), 5).ok());
  AcknowledgedAfter(Region(1), 7, 5);
  EXPECT_GT(executor_.Now() - expelled_, kTerm);
}

TEST_F(OwnershipTest, CloseOfADaughterWithinTheOpeningWaitIsNotClean) {
  for (const bool fault : {false, true}) {
    Open({.early_close_in_order = fault});
    Expel();
    ASSERT_TRUE(Split(Region(0), 5).ok());
    executor_.RunFor(1s);
    const Time moved = executor_.Now();
    ASSERT_TRUE(Move(Region(1), Idle()).ok());
    AcknowledgedAfter(Region(1), 7, 5);
    EXPECT_EQ(executor_.Now() - moved > kTerm, !fault);
  }
}

TEST_F(OwnershipTest, MergedRegionWaitsAsLongAsItsParents) {
  for (const bool fault : {false, true}) {
    Open({.early_close_in_order = fault});
    ASSERT_TRUE(Split(first_, 5).ok());
    first_ = Region(0);
    ASSERT_TRUE(Move(Region(1), Idle()).ok());  // only the lower one waits
    Expel();
    executor_.RunFor(1s);
    const Time merged = executor_.Now();
    const Status status = Opened(Await<Status>(
        &executor_, [&](auto done) { cluster_->MergeRegion(RegionId(Region(0).id()), done); }));
    ASSERT_TRUE(status.ok()) << status;
    AcknowledgedAfter(Region(0), 7, 5);
    EXPECT_EQ(executor_.Now() - merged > kTerm, !fault);
  }
}

// The entries of a dropped index may be gone before a region hears that it was dropped.
TEST_F(OwnershipTest, ARegionThatHasNotHeardOfADropDoesNotAnswerByTheIndex) {
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    Open();
    AcknowledgedAfter(first_, 1, 5);
    cluster_->DropIndex("t", "n", [](const auto&) {});
    while (cluster_->catalog().HasIndex(table_.id, table_.indexes[0].id)) {
      ASSERT_TRUE(executor_.RunOne());
    }
    ASSERT_TRUE(cluster_->Compact().ok());
    // A coordinator that knows of the new owner scans its rows.
    const auto found = FoundBy(first_, 5);
    EXPECT_EQ(found.value_or(1), 1);
    if (!found.has_value()) ++refused;
  }
  EXPECT_GT(refused, 0) << "the search never came before the order";
}

// Entries that compactions drop are gone from snapshots, too.
TEST_F(OwnershipTest, ASearchWhoseRegionIsSplitMeanwhileIsNotAnswered) {
  for (const bool fence : {false, true}) {
    fence_searches_ = fence;
    Open();
    AcknowledgedAfter(first_, 1, 5);
    AcknowledgedAfter(first_, 7, 5);
    EXPECT_EQ(FoundBy(first_, 5), 2);
    during_search_ = [&] {
      ASSERT_TRUE(Split(first_, 5).ok());
      ASSERT_TRUE(cluster_->Compact().ok());
    };
    EXPECT_EQ(FoundBy(first_, 5), fence ? std::nullopt : std::optional(1));
  }
}

TEST_F(OwnershipTest, AnIndexWhoseLastEntriesAreYoungerThanTheSnapshotIsNotAsked) {
  build_rows_ = 1;
  Open();
  for (int64_t id = 1; id <= 20; ++id) AcknowledgedAfter(first_, id, 5);
  const auto change = [&](auto&& call) {
    const auto changed = Await<Result<TableSchema>>(&executor_, call);
    ASSERT_TRUE(changed.ok()) << changed.status();
    table_ = *changed;
  };
  change([&](auto done) { cluster_->DropIndex("t", "n", done); });
  const IndexSpec again{.name = "again", .columns = {1}, .expected_values = 100};
  change([&](auto done) { cluster_->CreateIndex("t", again, done); });
  during_search_ = [&] {
    EXPECT_FALSE(HasEntries(first_)) << "it came too late";
    executor_.RunFor(1s);
    EXPECT_TRUE(HasEntries(first_));
  };
  EXPECT_EQ(FoundBy(first_, 5), 20);
}

// Compactions drop the entries of a dropped index under the hands of who counts them.
TEST_F(OwnershipTest, TheCountOfAnIndexThatIsDroppedMeanwhileIsNotPublished) {
  build_rows_ = 1;
  Open();
  for (int64_t id = 1; id <= 20; ++id) AcknowledgedAfter(first_, id, id);
  const std::string other = Idle();
  cluster_->MoveRegion(RegionId(first_.id()), other, [](const Status&) {});
  std::shared_ptr<IndexFilter> filter;
  while (Region(0).server() != other || !(filter = Filter(Region(0)))) {
    ASSERT_TRUE(executor_.RunOne());
  }
  ASSERT_FALSE(filter->published());
  // The catalog has dropped it, and no server has heard of it yet.
  TableSchema changed = table_;
  changed.indexes.clear();
  ++changed.version;
  ASSERT_TRUE(cluster_->catalog().Commit({.put_tables = {changed}}).ok());
  ASSERT_TRUE(cluster_->Compact().ok());
  executor_.RunFor(1s);
  EXPECT_FALSE(filter->building());
  EXPECT_FALSE(filter->published());
}

TEST_F(OwnershipTest, AnEngineHearsOfAChangedSchemaWithoutHavingFailed) {
  Open();
  Engine engine(cluster_.get(), &executor_, {.seed = 1});
  ASSERT_EQ((*engine.Table("t"))->indexes.size(), 1u);
  executor_.RunFor(1s);
  const auto changed = Await<Result<TableSchema>>(
      &executor_, [&](auto done) { cluster_->DropIndex("t", "n", done); });
  ASSERT_TRUE(changed.ok()) << changed.status();
  executor_.RunFor(5ms);
  EXPECT_EQ((*engine.Table("t"))->indexes.size(), 0u);
}

}  // namespace
}  // namespace tamis
