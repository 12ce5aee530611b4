// A region server answers within the time that its asker has left, and comes some way each time.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tamis/base/answers.h"
#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/engine.h"
#include "tamis/query/plan.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// An executor whose clock goes on by `tick` each time that it is read.
class TickingExecutor : public Executor {
 public:
  explicit TickingExecutor(SimExecutor* base) : base_(base) {}

  Time Now() const override {
    base_->Jump(tick);
    return base_->Now();
  }
  void Post(Task task) override { base_->Post(std::move(task)); }
  void PostAfter(Duration delay, Task task) override { base_->PostAfter(delay, std::move(task)); }
  bool WaitFor(Waiter* waiter, Time deadline) override { return base_->WaitFor(waiter, deadline); }

  Duration tick{0};

 private:
  SimExecutor* const base_;
};

class SearchDeadlineTest : public testing::Test {
 protected:
  static constexpr int64_t kRegions = 100;
  static constexpr int64_t kRowsOfOne = 40;
  enum Column : uint32_t { kId, kGroup, kEven, kOdd, kPlain };

  explicit SearchDeadlineTest(int64_t regions = kRegions)
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("search_deadline_test." + std::to_string(getpid()))) {
    std::filesystem::remove_all(directory_);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.store.background_compactions = false;  // two searches find the same garbage
    options.servers = 1;
    options.session_timeout = std::chrono::hours(1);
    options.server.proof_term = std::chrono::hours(1);  // the clock runs far ahead of the proofs
    options.server.streams_by_cost = false;  // else all would be scanned: each value is common
    options.executor_of = [this](const std::string&) { return &server_clock_; };
    auto opened = RocksCluster::Open(options, &executor_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    cluster_ = std::move(*opened);
    TableSchema schema;
    schema.name = "t";
    for (const char* name : {"id", "grp", "even", "odd", "plain"}) {
      schema.columns.push_back({.name = name, .type = Type::kInt64, .nullable = false});
    }
    schema.key = {kId};
    for (const auto& [name, column] : {std::pair("grp", kGroup), {"even", kEven}, {"odd", kOdd}}) {
      schema.indexes.push_back({.name = name, .columns = {column}, .expected_values = 100});
    }
    auto made = AwaitResult<TableSchema>(&executor_, {},
                                         [&](auto done) { cluster_->CreateTable(schema, done); });
    EXPECT_TRUE(made.ok()) << made.status();
    table_ = std::make_shared<const TableSchema>(*made);
    Fill();
    for (int64_t i = 1; i < regions; ++i) {
      const RegionInfo last = Regions().back();
      const std::string key = *KeyFormat(*table_).Encode(RowOf(i * kRowsOfOne));
      const Status split = AwaitStatus(
          &executor_, {}, [&](auto done) { cluster_->SplitRegion(last.id, key, done); });
      EXPECT_TRUE(split.ok()) << split;
    }
    executor_.RunFor(seconds(10));  // the daughters' indexes are built
    EXPECT_EQ(cluster_->pending_work(), 0u);
  }
  ~SearchDeadlineTest() override {
    executor_.Clear();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  static Row RowOf(int64_t id) {
    return {Value::Int64(id), Value::Int64(1), Value::Int64(1 - id % 2), Value::Int64(id % 2),
            Value::Int64(0)};
  }
  void Fill() {
    Engine engine(cluster_.get(), &executor_, {.seed = 1});
    std::vector<Write> writes;
    for (int64_t id = 0; id < kRegions * kRowsOfOne; ++id) writes.push_back({.row = RowOf(id)});
    for (const Status& status : engine.Apply(table_, std::move(writes))) {
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  std::vector<RegionInfo> Regions() {
    return *AwaitResult<std::vector<RegionInfo>>(
        &executor_, {}, [&](auto done) { cluster_->ListRegions("t", {}, done); });
  }

  struct Outcome {
    uint64_t requests = 0;
    pb::SearchCounters sum;
  };
  // Asks the one server for all regions until everything from this key on is covered.
  Outcome Cover(const Predicate& predicate, Duration timeout, const std::string& from = "") {
    const Plan plan = MakePlan(*table_, predicate, {});
    std::map<std::string, pb::SearchRange> left;  // by start
    for (const RegionInfo& region : Regions()) {
      pb::SearchRange range;
      range.set_region_id(region.id.number());
      range.set_epoch(region.epoch);
      range.set_start(std::max(region.start, from));
      range.set_end(region.end);
      left[range.start()] = range;
    }
    Outcome outcome;
    const auto server = cluster_->Server("rs1");
    while (!left.empty() && outcome.requests < 10'000) {
      pb::SearchRequest request;
      request.set_table_id(table_->id);
      request.set_schema_version(table_->version);
      request.set_timeout_ns(static_cast<uint64_t>(timeout.count()));
      for (const auto& [start, range] : left) *request.add_ranges() = range;
      for (const pb::Branch& branch : plan.branches) *request.add_branches() = branch;
      const Time begin = executor_.Now();
      const auto reply = AwaitResult<pb::SearchReply>(
          &executor_, {}, [&](auto done) { server->Search(request, done); });
      EXPECT_TRUE(reply.ok()) << reply.status();
      if (!reply.ok()) break;
      ++outcome.requests;
      EXPECT_LE(executor_.Now() - begin, timeout);
      EXPECT_GE(reply->results_size(), 1);
      bool progress = false;
      for (const pb::RangeResult& result : reply->results()) {
        EXPECT_FALSE(result.has_error()) << result.error().message();
        pb::SearchRange& range = left[result.start()];
        progress |= result.resume() != range.resume();
        range.set_resume(result.resume());
        if (result.resume().empty()) {
          progress = true;
          left.erase(result.start());
        }
        outcome.sum.set_rows_read(outcome.sum.rows_read() + result.counters().rows_read());
        outcome.sum.set_entries_read(outcome.sum.entries_read() + result.counters().entries_read());
      }
      EXPECT_TRUE(progress) << "request " << outcome.requests;
      if (!progress) break;
    }
    EXPECT_TRUE(left.empty());
    return outcome;
  }

  // Many short requests do the same work as a few long ones.
  void ExpectTheSameWork(const Predicate& predicate) {
    server_clock_.tick = Duration(0);
    const Outcome one = Cover(predicate, seconds(100));
    server_clock_.tick = milliseconds(1);
    const Outcome many = Cover(predicate, milliseconds(20));
    server_clock_.tick = Duration(0);
    EXPECT_GT(many.requests, 5 * one.requests);
    EXPECT_EQ(many.sum.rows_read(), one.sum.rows_read());
    // A request finds again where it was.
    EXPECT_LE(many.sum.entries_read(), one.sum.entries_read() + 6 * many.requests);
  }
  static Predicate Equal(uint32_t column, int64_t value) {
    return Predicate::Compare(column, Predicate::Op::kEq, Value::Int64(value));
  }

  const std::filesystem::path directory_;
  // By a scan, by an equality and by a range of an index.
  void ExpectTheSameWorkOfEachAccess() {
    {
      SCOPED_TRACE("a scan");
      ExpectTheSameWork(Equal(kPlain, 7));
    }
    {
      SCOPED_TRACE("an equality");
      ExpectTheSameWork(Predicate::And({Equal(kGroup, 1), Equal(kPlain, 7)}));
    }
    {
      SCOPED_TRACE("a range");
      ExpectTheSameWork(Predicate::And(
          {Predicate::Compare(kGroup, Predicate::Op::kGe, Value::Int64(0)), Equal(kPlain, 7)}));
    }
  }

  SimExecutor executor_{1, milliseconds(0)};
  TickingExecutor server_clock_{&executor_};
  std::unique_ptr<RocksCluster> cluster_;
  SchemaPtr table_;
};

TEST_F(SearchDeadlineTest, EveryRequestMakesProgressAndNoneStartsOver) {
  ExpectTheSameWorkOfEachAccess();
  {
    SCOPED_TRACE("two equalities that agree nowhere");
    ExpectTheSameWork(Predicate::And({Equal(kEven, 1), Equal(kOdd, 1)}));
  }
}

// All rows in one region, which many requests have to share.
class OneRegionDeadlineTest : public SearchDeadlineTest {
 protected:
  OneRegionDeadlineTest() : SearchDeadlineTest(1) {}
};

TEST_F(OneRegionDeadlineTest, RequestsGoOnWithinARegionWhereTheLastOneEnded) {
  ExpectTheSameWorkOfEachAccess();
  // Each request finds out anew that the two agree nowhere.
  server_clock_.tick = milliseconds(1);
  const Outcome outcome =
      Cover(Predicate::And({Equal(kEven, 1), Equal(kOdd, 1)}), milliseconds(20));
  EXPECT_GT(outcome.requests, 5u);
  EXPECT_LT(outcome.requests, 200u);
}

// Entries of rows that are not searched are passed over within the time, too.
TEST_F(OneRegionDeadlineTest, EntriesOutsideOfTheKeysEndAtTheDeadlineAndAreNotReadAgain) {
  server_clock_.tick = milliseconds(1);
  constexpr int64_t kRows = kRegions * kRowsOfOne;
  const std::string last = *KeyFormat(*table_).Encode(RowOf(kRows - 1));
  const Outcome outcome = Cover(Predicate::Compare(kGroup, Predicate::Op::kGe, Value::Int64(0)),
                                milliseconds(20), last);
  EXPECT_GT(outcome.requests, 5u);
  EXPECT_LE(outcome.sum.entries_read(), static_cast<uint64_t>(kRows) + 6 * outcome.requests);
}

TEST_F(SearchDeadlineTest, SearchWithoutTimeLeftMakesProgress) {
  server_clock_.tick = seconds(1);
  const auto server = cluster_->Server("rs1");
  const Plan plan = MakePlan(*table_, Equal(kPlain, 7), {});
  const RegionInfo region = Regions().front();
  pb::SearchRequest request;
  request.set_table_id(table_->id);
  request.set_schema_version(table_->version);
  request.set_timeout_ns(1);
  for (int i = 0; i < 2; ++i) {
    pb::SearchRange* range = request.add_ranges();
    range->set_region_id(region.id.number());
    range->set_epoch(region.epoch);
    range->set_start(region.start);
    range->set_end(region.end);
  }
  *request.add_branches() = plan.branches[0];
  const auto reply = AwaitResult<pb::SearchReply>(
      &executor_, {}, [&](auto done) { server->Search(request, done); });
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->results_size(), 1);  // the second range was not begun
  EXPECT_FALSE(reply->results(0).resume().empty());
  EXPECT_GE(reply->results(0).counters().rows_read(), 1u);
}

TEST_F(SearchDeadlineTest, AlternativesWithoutRowsAreCutOffAtTheDeadlineAndGoOn) {
  server_clock_.tick = milliseconds(1);
  constexpr milliseconds kTimeout(20);
  const auto server = cluster_->Server("rs1");
  const RegionInfo region = Regions().front();
  pb::SearchRequest request;
  request.set_table_id(table_->id);
  request.set_schema_version(table_->version);
  request.set_timeout_ns(static_cast<uint64_t>(Duration(kTimeout).count()));
  for (int64_t value = 100; value < 1000; ++value) {  // no row has them
    *request.add_branches() = MakePlan(*table_, Equal(kGroup, value), {}).branches[0];
  }
  pb::SearchRange* range = request.add_ranges();
  range->set_region_id(region.id.number());
  range->set_epoch(region.epoch);
  range->set_start(region.start);
  range->set_end(region.end);
  int requests = 0;
  do {
    const Time begin = executor_.Now();
    const auto reply = AwaitResult<pb::SearchReply>(
        &executor_, {}, [&](auto done) { server->Search(request, done); });
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->results_size(), 1);
    EXPECT_LE(executor_.Now() - begin, kTimeout);
    ASSERT_NE(reply->results(0).resume(), range->resume()) << "no progress";
    range->set_resume(reply->results(0).resume());
    EXPECT_EQ(reply->results(0).rows_size(), 0);
    ++requests;
  } while (!range->resume().empty());
  EXPECT_GT(requests, 2);
  EXPECT_LT(requests, 100);
}

TEST_F(SearchDeadlineTest, ARegionBehindOrAWrongNumberIsAnAnswerOfItsRange) {
  const auto server = cluster_->Server("rs1");
  const Plan plan = MakePlan(*table_, Equal(kGroup, 1), {});
  const RegionInfo region = Regions().front();
  pb::SearchRequest request;
  request.set_table_id(table_->id);
  request.set_schema_version(table_->version + 1);  // which no region here follows yet
  for (const uint64_t id : {region.id.number(), uint64_t{1} << 63, uint64_t{0}}) {
    pb::SearchRange* range = request.add_ranges();
    range->set_region_id(id);
    range->set_epoch(region.epoch);
    range->set_start(region.start);
    range->set_end(region.end);
  }
  *request.add_branches() = plan.branches[0];
  // An index that the region does not know is a scan there.
  request.mutable_branches(0)->mutable_streams(0)->set_index_id(99);
  const auto ask = [&] {
    return AwaitResult<pb::SearchReply>(&executor_, {},
                                        [&](auto done) { server->Search(request, done); });
  };
  auto reply = ask();
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->results_size(), 3);
  EXPECT_FALSE(reply->results(0).has_error()) << reply->results(0).error().message();
  EXPECT_EQ(reply->results(0).rows_size(), kRowsOfOne);
  EXPECT_EQ(reply->results(0).counters().scanned_regions(), 1u);
  for (int i : {1, 2}) {
    EXPECT_EQ(reply->results(i).error().code(), pb::Error::INVALID_ARGUMENT);
  }
  // A column that it does not know yet is no answer, but one that says which schema it has.
  request.add_columns(99);
  reply = ask();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->results(0).error().code(), pb::Error::UNAVAILABLE);
  EXPECT_EQ(reply->results(0).error().schema_version(), table_->version);
}

}  // namespace
}  // namespace tamis
