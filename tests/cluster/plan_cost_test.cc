// In each region the index leads that has the fewest entries; others are joined where that pays.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tamis/base/answers.h"
#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/engine.h"
#include "tamis/query/plan.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tests/cluster/branch_search.h"
#include "tests/cluster/orders.h"

namespace tamis {
namespace {

using enum Orders::Column;

class PlanCostTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 6000;

  PlanCostTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("plan_cost_test." + std::to_string(getpid()))),
        orders_{.count = kRows,
                .countries = 10,
                .cities = 10,
                .days = 1000,
                .longest_delay = 20,
                .amounts = 6000,
                .expected_values = 500,
                .seed = 5},
        rows_(orders_.Rows()) {}
  ~PlanCostTest() override { Close(); }

  void Close() {
    executor_.Clear();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Three regions.
  void Open(const std::function<void(RegionServerOptions*)>& set, bool in_memory = false) {
    Close();
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.store.background_compactions = false;
    options.servers = 1;
    options.session_timeout = std::chrono::hours(1);
    options.server.proof_term = std::chrono::hours(1);
    set(&options.server);
    auto opened = RocksCluster::Open(options, &executor_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    cluster_ = std::move(*opened);
    auto made = AwaitResult<TableSchema>(
        &executor_, {}, [&](auto done) { cluster_->CreateTable(orders_.Schema(), done); });
    ASSERT_TRUE(made.ok()) << made.status();
    table_ = std::make_shared<const TableSchema>(*made);
    {
      Engine engine(cluster_.get(), &executor_, {.seed = 1});
      std::vector<Write> writes;
      for (const Row& row : rows_) writes.push_back({.row = row});
      for (const Status& status : engine.Apply(table_, std::move(writes))) {
        ASSERT_TRUE(status.ok()) << status;
      }
    }
    for (int i = 0; i < 2; ++i) {
      const RegionInfo last = Regions().back();
      ASSERT_TRUE(AwaitStatus(&executor_, {}, [&](auto done) {
                    cluster_->SplitRegion(last.id, "", done);
                  }).ok());
      executor_.RunFor(std::chrono::seconds(5));
    }
    ASSERT_EQ(cluster_->pending_work(), 0u);
    ASSERT_TRUE(in_memory || cluster_->store().Compact().ok());  // no garbage
  }

  std::vector<RegionInfo> Regions() {
    return *AwaitResult<std::vector<RegionInfo>>(
        &executor_, {}, [&](auto done) { cluster_->ListRegions("orders", {}, done); });
  }

  struct Outcome : BranchWork {
    std::set<std::string> distinct;
  };

  Outcome Ask(const std::vector<pb::Branch>& branches) {
    Outcome outcome{SearchBranches(cluster_.get(), &executor_, *table_, Regions(), branches), {}};
    EXPECT_TRUE(outcome.ok()) << outcome.error;
    outcome.distinct.insert(outcome.keys.begin(), outcome.keys.end());
    return outcome;
  }
  Outcome Ask(const Predicate& predicate) { return Ask(MakePlan(*table_, predicate, {}).branches); }

  // The cheapest way to find the rows by one index alone.
  uint64_t LeastCost(const Predicate& predicate) {
    const pb::Branch branch = MakePlan(*table_, predicate, {}).branches[0];
    uint64_t least = ~uint64_t{0};
    for (const pb::IndexStream& stream : branch.streams()) {
      pb::Branch one;
      one.set_predicate(branch.predicate());
      *one.add_streams() = stream;
      least = std::min(least, Ask({one}).cost());
    }
    return least;
  }

  uint64_t Matching(const Predicate& predicate) const { return CountMatches(rows_, predicate); }

  static std::vector<Predicate> Questions() {
    std::vector<Value> many;
    for (int64_t value = 0; value < 40; ++value) many.push_back(Value::Int64(value * 7));
    return {
        Predicate::And({Between(kAmount, 500, 520), Equal(kCountry, 0)}),
        Predicate::And({Between(kAmount, 500, 3000), Equal(kCountry, 0)}),
        Predicate::And({Between(kAmount, 500, 3000), Equal(kCountry, 9)}),
        Predicate::And({Between(kAmount, 0, 60), Equal(kCity, 1)}),
        Predicate::And({Equal(kCountry, 0), Equal(kCity, 3)}),  // which says it all
        Predicate::And({Equal(kCountry, 1), Equal(kCity, 3)}),  // never
        Predicate::And({Equal(kCountry, 0), Equal(kYear, 1)}),  // both common
        Predicate::And({Between(kDay, 100, 200), Between(kShipped, 100, 220)}),  // nearly the same
        Predicate::And({Between(kDay, 100, 200), Between(kShipped, 600, 700)}),  // never
        Predicate::And({Equal(kYear, 0), Between(kDay, 0, 30)}),
        Predicate::And({Equal(kYear, 0), Between(kDay, 340, 420), Between(kAmount, 0, 1000)}),
        Predicate::And({Predicate::In(kDay, many), Equal(kCountry, 6)}),
        Predicate::And({Predicate::In(kDay, many), Between(kAmount, 0, 3000)}),
        Predicate::And({Equal(kDay, 77), Between(kAmount, 0, 5900), Equal(kCountry, 0)}),
        Predicate::And({Equal(kShipped, 500), Equal(kDay, 495)}),
        Predicate::Compare(kAmount, Predicate::Op::kGt, Value::Int64(100)),
    };
  }

  const std::filesystem::path directory_;
  const Orders orders_;
  const std::vector<Row> rows_;
  SimExecutor executor_{1, std::chrono::milliseconds(0)};
  std::unique_ptr<RocksCluster> cluster_;
  SchemaPtr table_;
};

TEST_F(PlanCostTest, NoPlanCostsTwiceWhatTheBestIndexDoes) {
  uint64_t too_dear_by_first = 0;
  for (const bool by_cost : {true, false}) {
    Open([&](RegionServerOptions* options) {
      options->streams_by_cost = by_cost;
      options->join_streams = by_cost;
    });
    for (const Predicate& question : Questions()) {
      SCOPED_TRACE(question.ToString(*table_));
      const Outcome outcome = Ask(question);
      EXPECT_EQ(outcome.keys.size(), Matching(question));
      EXPECT_EQ(outcome.distinct.size(), outcome.keys.size());
      const uint64_t least = LeastCost(question);
      constexpr uint64_t kFew = 60;  // rows of each region
      const bool too_dear = outcome.cost() > 2 * least + kFew * 3;
      if (by_cost) {
        EXPECT_FALSE(too_dear) << outcome.cost() << ", where " << least << " would do";
      } else {
        too_dear_by_first += too_dear ? 1 : 0;
      }
    }
  }
  EXPECT_GE(too_dear_by_first, 3u);
}

TEST_F(PlanCostTest, ShortRangeDrivesBeforeALongEqualityAndIsExplained) {
  Open([](RegionServerOptions*) {});
  const Predicate question = Predicate::And({Between(kAmount, 500, 520), Equal(kCountry, 0)});
  const Outcome outcome = Ask(question);
  const uint64_t few = Matching(Between(kAmount, 500, 520));
  EXPECT_EQ(outcome.led.at(table_->FindIndex("amount")->id), 3u);
  EXPECT_EQ(outcome.expected, few);
  EXPECT_EQ(outcome.rows_read, few);
  EXPECT_LE(outcome.entries, 2 * few + 3 * 8);
}

// RocksDB's estimates of what is in memory are no better than guesses.
TEST_F(PlanCostTest, EntriesInMemtablesAreReadToEstimateTheirNumber) {
  Open([](RegionServerOptions* options) { options->probe_entries = 16; }, /*in_memory=*/true);
  for (const Predicate& question : Questions()) {
    SCOPED_TRACE(question.ToString(*table_));
    const Outcome outcome = Ask(question);
    EXPECT_EQ(outcome.distinct.size(), Matching(question));
    const uint64_t least = LeastCost(question);
    EXPECT_LE(outcome.cost(), 2 * least + 3 * 60);
  }
}

TEST_F(PlanCostTest, AnIndexOfManyRangesIsNotOpenedWhereAnotherIsShort) {
  Open([](RegionServerOptions*) {});
  std::vector<Value> days;
  for (int64_t day = 0; day < 200; ++day) days.push_back(Value::Int64(day * 5));
  const Outcome outcome = Ask(Predicate::And({Predicate::In(kDay, days), Equal(kCountry, 6)}));
  EXPECT_EQ(outcome.led.at(table_->FindIndex("country")->id), 3u);
  EXPECT_LE(outcome.seeks, 3 * 2u);
}

TEST_F(PlanCostTest, EqualityWithFewCountedEntriesDrivesWithoutAProbe) {
  Open([](RegionServerOptions*) {});
  const Predicate question = Predicate::And({Equal(kDay, 77), Equal(kCountry, 0), Equal(kYear, 0)});
  const Outcome outcome = Ask(question);
  const uint64_t few = Matching(Equal(kDay, 77));
  ASSERT_LE(few, 14u);
  EXPECT_EQ(outcome.led.at(table_->FindIndex("day")->id), 3u);
  EXPECT_EQ(outcome.rows_read, few);
}

TEST_F(PlanCostTest, AStreamIsJoinedWhereItSparesMoreThanItCosts) {
  const Predicate never = Predicate::And({Between(kDay, 100, 200), Between(kShipped, 600, 700)});
  const Predicate same = Predicate::And({Between(kDay, 100, 200), Between(kShipped, 90, 230)});
  for (const bool join : {true, false}) {
    Open([&](RegionServerOptions* options) { options->join_streams = join; });
    const uint64_t of_day = Matching(Between(kDay, 100, 200));
    Outcome outcome = Ask(never);
    EXPECT_EQ(outcome.keys.size(), 0u);
    EXPECT_EQ(outcome.rows_read < of_day / 2, join);
    outcome = Ask(same);
    EXPECT_EQ(outcome.keys.size(), Matching(same));
    EXPECT_EQ(outcome.joined.at(table_->FindIndex("shipped")->id), 0u);
  }
}

// For every driving index and page size: each row is found once.
TEST_F(PlanCostTest, ContinuationKeepsTheDrivingIndex) {
  for (const uint64_t probe : {0, 8, 256}) {
    Open([&](RegionServerOptions* options) {
      options->page_candidates = 40;
      options->page_rows = probe == 8 ? 300 : 17;
      options->probe_entries = probe;
    });
    for (const Predicate& question : Questions()) {
      SCOPED_TRACE(question.ToString(*table_));
      const Outcome outcome = Ask(question);
      EXPECT_EQ(outcome.keys.size(), Matching(question));
      EXPECT_EQ(outcome.distinct.size(), outcome.keys.size());
    }
  }
}

TEST_F(PlanCostTest, MostRowsOfARegionAreScannedAndNotLookedUp) {
  Open([](RegionServerOptions*) {});
  const Predicate most = Predicate::Compare(kAmount, Predicate::Op::kGt, Value::Int64(100));
  Outcome outcome = Ask(most);
  EXPECT_EQ(outcome.keys.size(), Matching(most));
  EXPECT_EQ(outcome.led.at(0), 3u);
  EXPECT_LE(outcome.rows_read, static_cast<uint64_t>(kRows));
  const Predicate few = Predicate::Compare(kAmount, Predicate::Op::kLt, Value::Int64(100));
  outcome = Ask(few);
  EXPECT_EQ(outcome.keys.size(), Matching(few));
  EXPECT_EQ(outcome.led.at(table_->FindIndex("amount")->id), 3u);
}

TEST_F(PlanCostTest, AContinuationOfAnotherSearchIsRefused) {
  Open([](RegionServerOptions* options) { options->page_rows = 1; });
  const auto server = cluster_->Server("rs1");
  const pb::Branch first = MakePlan(*table_, Between(kAmount, 0, 60), {}).branches[0];
  pb::SearchRequest request = RequestOf(*table_, Regions().front(), {first});
  const auto ask = [&] {
    return AwaitResult<pb::SearchReply>(&executor_, {},
                                        [&](auto done) { server->Search(request, done); });
  };
  auto reply = ask();
  ASSERT_TRUE(reply.ok()) << reply.status();
  const std::string resume = reply->results(0).resume();
  ASSERT_FALSE(resume.empty());
  request.mutable_ranges(0)->set_resume(resume);
  for (const Predicate& other : {Between(kDay, 0, 60), Equal(kAmount, 5)}) {
    *request.mutable_branches(0) = MakePlan(*table_, other, {}).branches[0];
    reply = ask();
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->results(0).error().code(), pb::Error::INVALID_ARGUMENT);
  }
  *request.mutable_branches(0)->add_streams() = request.branches(0).streams(0);
  reply = ask();
  EXPECT_TRUE(!reply.ok() || reply->results(0).error().code() == pb::Error::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tamis
