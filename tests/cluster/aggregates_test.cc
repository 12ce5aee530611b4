// Engine::Aggregate beside a simple model, and while rows move within an index, regions split and
// move to other servers.
#include "tamis/query/aggregate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <thread>

#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/cluster/faults.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

enum Column : uint32_t { kId, kGroup, kNumber, kDecimal, kReal, kText };

class AggregatesTest : public testing::Test {
 protected:
  AggregatesTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("aggregates_test." + std::to_string(getpid()))) {}
  ~AggregatesTest() override { Close(); }

  void Close() {
    executor_.reset();
    engine_.reset();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Open(uint64_t page_grouped, const Faults& faults = {}) {
    Close();
    executor_ = std::make_unique<ThreadExecutor>(4);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 3;
    options.server.split_bytes = 0;
    options.server.page_grouped = page_grouped;
    options.server.faults = faults;
    auto opened = RocksCluster::Open(options, executor_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    cluster_ = std::move(*opened);
    engine_ =
        std::make_unique<Engine>(cluster_.get(), executor_.get(),
                                 Engine::Options{.faults = std::make_shared<const Faults>(faults)});
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "g", .type = Type::kInt64},
                      {.name = "n", .type = Type::kInt64},
                      {.name = "d", .type = Type::kDecimal},
                      {.name = "r", .type = Type::kDouble},
                      {.name = "s", .type = Type::kText}};
    schema.key = {0};
    schema.indexes = {{.name = "g_n", .columns = {kGroup, kNumber}},
                      {.name = "n", .columns = {kNumber}},
                      {.name = "d_s", .columns = {kDecimal, kText}}};
    for (IndexSpec& index : schema.indexes) index.expected_values = 500;
    auto made = Await<Result<TableSchema>>(executor_.get(),
                                           [&](auto done) { cluster_->CreateTable(schema, done); });
    ASSERT_TRUE(made.ok()) << made.status();
    table_ = std::make_shared<const TableSchema>(*made);
  }

  Row RandomRowOf(int64_t id) {
    const auto number = [&](uint64_t below) {
      return static_cast<int64_t>(random_.Uniform(below)) - static_cast<int64_t>(below / 3);
    };
    Row row(table_->columns.size());
    row[kId] = Value::Int64(id);
    if (!random_.OneIn(6)) row[kGroup] = Value::Int64(number(7));
    if (!random_.OneIn(6)) row[kNumber] = Value::Int64(number(40));
    if (!random_.OneIn(6)) row[kDecimal] = *Value::Decimal(std::to_string(number(50)) + "e-2");
    if (!random_.OneIn(6)) row[kReal] = *Value::Double(static_cast<double>(number(30)) / 4);
    if (!random_.OneIn(6)) row[kText] = Value::Text(std::string(random_.Uniform(4), 'x'));
    return row;
  }

  void Put(std::vector<Row> rows) {
    std::vector<Write> writes;
    for (Row& row : rows) writes.push_back({.row = std::move(row)});
    for (const Status& status : engine_->Apply(table_, std::move(writes))) {
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  void Fill(int64_t rows) {
    for (int64_t id = 0; id < rows; ++id) rows_.push_back(RandomRowOf(id));
    ASSERT_NO_FATAL_FAILURE(Put(rows_));
  }

  std::vector<RegionInfo> Regions() {
    auto regions = Await<Result<std::vector<RegionInfo>>>(
        executor_.get(), [&](auto done) { cluster_->ListRegions("t", {}, done); });
    return regions.ok() ? *regions : std::vector<RegionInfo>();
  }
  Status SplitAt(int64_t id) {
    Row row(table_->columns.size());
    row[kId] = Value::Int64(id);
    const std::string key = EncodeKey(*table_, row);
    for (const RegionInfo& region : Regions()) {
      if (!region.Contains(key)) continue;
      return Await<Status>(executor_.get(),
                           [&](auto done) { cluster_->SplitRegion(region.id, key, done); });
    }
    return NotFound("no region");
  }

  Result<Aggregates> Ask(std::vector<uint32_t> by, std::vector<uint32_t> totals,
                         Predicate predicate = {}, bool use_indexes = true) {
    AggregateOptions options;
    options.predicate = std::move(predicate);
    options.by = std::move(by);
    options.totals = std::move(totals);
    options.use_indexes = use_indexes;
    return engine_->Aggregate(table_, std::move(options));
  }

  struct Model {
    uint64_t count = 0;
    std::vector<uint64_t> values;
    std::vector<double> sums;
    std::vector<Value> least, greatest;
  };
  static double NumberOf(const Value& value) {
    switch (value.type()) {
      case Type::kInt64:
        return static_cast<double>(value.int64());
      case Type::kDouble:
        return value.dbl();
      case Type::kDecimal:
        return std::stod(value.str());
      default:
        return 0;
    }
  }
  std::map<std::vector<Value>, Model> ModelOf(const std::vector<uint32_t>& by,
                                              const std::vector<uint32_t>& totals,
                                              const Predicate& predicate) const {
    std::map<std::vector<Value>, Model> groups;
    if (by.empty()) groups[{}] = {};
    for (const Row& row : rows_) {
      if (!predicate.Matches(row)) continue;
      std::vector<Value> key;
      for (const uint32_t column : by) key.push_back(row[column]);
      Model& group = groups[key];
      ++group.count;
      group.values.resize(totals.size());
      group.sums.resize(totals.size());
      group.least.resize(totals.size());
      group.greatest.resize(totals.size());
      for (size_t i = 0; i < totals.size(); ++i) {
        const Value& value = row[totals[i]];
        if (value.is_null()) continue;
        ++group.values[i];
        group.sums[i] += NumberOf(value);
        if (group.least[i].is_null() || value < group.least[i]) group.least[i] = value;
        if (value > group.greatest[i]) group.greatest[i] = value;
      }
    }
    return groups;
  }

  void Compare(const std::vector<uint32_t>& by, const std::vector<uint32_t>& totals,
               const Predicate& predicate) {
    const auto got = Ask(by, totals, predicate);
    ASSERT_TRUE(got.ok()) << got.status();
    const auto expected = ModelOf(by, totals, predicate);
    ASSERT_EQ(got->groups.size(), expected.size());
    auto at = expected.begin();
    for (const AggregateGroup& group : got->groups) {
      const auto& [key, model] = *at++;
      ASSERT_EQ(group.by, key);
      ASSERT_EQ(group.count, model.count);
      for (size_t i = 0; i < totals.size() && model.count > 0; ++i) {
        const ColumnAggregate& column = group.totals[i];
        ASSERT_EQ(column.values, model.values[i]);
        ASSERT_EQ(column.least, model.least[i]);
        ASSERT_EQ(column.greatest, model.greatest[i]);
        const bool has_sum = column.values > 0 && table_->columns[totals[i]].type != Type::kText;
        ASSERT_EQ(column.sum.is_null(), !has_sum);
        if (has_sum) {
          ASSERT_NEAR(NumberOf(column.sum), model.sums[i], 1e-9);
        }
      }
    }
  }

  std::vector<uint32_t> RandomColumns(uint64_t most) {
    std::vector<uint32_t> columns;
    for (uint64_t n = random_.Uniform(most + 1); n > 0; --n) {
      columns.push_back(static_cast<uint32_t>(random_.Uniform(table_->columns.size())));
    }
    return columns;
  }
  Predicate RandomCondition() {
    switch (random_.Uniform(6)) {
      case 0:
        return Predicate::True();
      case 1:
        return Predicate::Compare(kGroup, Predicate::Op::kEq, Value::Int64(1));
      case 2:
        return Predicate::Between(kNumber, Value::Int64(-5), Value::Int64(12));
      case 3:
        return Predicate::Or({Predicate::IsNull(kGroup),
                              Predicate::Compare(kNumber, Predicate::Op::kGt, Value::Int64(9))});
      case 4:
        return Predicate::Compare(kId, Predicate::Op::kLt, Value::Int64(90));
      default:
        return Predicate::Compare(kText, Predicate::Op::kEq, Value::Text("xx"));
    }
  }

  // The number of rows and the sum of their decimals, which no writer changes.
  std::pair<uint64_t, Value> Constants(bool use_indexes) {
    const auto got = Ask({}, {kDecimal}, {}, use_indexes);
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok()) return {};
    return {got->groups[0].count, got->groups[0].totals[0].sum};
  }
  uint64_t CountByIndex() {
    const auto got = Ask({}, {});
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok()) return 0;
    EXPECT_EQ(got->explain.index, "n");
    EXPECT_EQ(got->explain.regions_in_parts, 0u);
    return got->groups[0].count;
  }

  const uint64_t seed_ = SeedFromSystem();
  Random random_{seed_};
  const std::filesystem::path directory_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
  std::vector<Row> rows_;
};

TEST_F(AggregatesTest, AreThoseOfASimpleModel) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(Open(1 + random_.Uniform(100)));
  ASSERT_NO_FATAL_FAILURE(Fill(300));
  for (int i = 0; i < 150; ++i) {
    if (i == 50 || i == 100) {
      ASSERT_TRUE(SplitAt(i * 2).ok());
    }
    const std::vector<uint32_t> by = RandomColumns(2), totals = RandomColumns(3);
    ASSERT_NO_FATAL_FAILURE(Compare(by, totals, RandomCondition()));
  }
}

TEST_F(AggregatesTest, ServersSendGroupsAndTotals) {
  ASSERT_NO_FATAL_FAILURE(Open(1'000'000));
  ASSERT_NO_FATAL_FAILURE(Fill(300));
  const auto got = Ask({kGroup}, {kNumber});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->explain.index, "g_n");
  EXPECT_EQ(got->explain.rows_read, 0u);
  EXPECT_EQ(got->explain.groups, got->groups.size());
  EXPECT_EQ(got->explain.groups_with_totals, got->groups.size());
  EXPECT_EQ(got->explain.requests, 1u);
}

TEST_F(AggregatesTest, AnIntegerSumThatDoesNotFitIsAnError) {
  ASSERT_NO_FATAL_FAILURE(Open(1'000'000));
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (int64_t id = 0; id < 3; ++id) {
    Row row(table_->columns.size());
    row[kId] = Value::Int64(id);
    row[kNumber] = Value::Int64(id == 2 ? -1 : kMax);
    ASSERT_NO_FATAL_FAILURE(Put({row}));
  }
  const auto got = Ask({}, {kNumber});
  EXPECT_EQ(got.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(got.status().message(),
            "column \"n\": integer overflow: a sum does not fit in 64 bits");
  const Predicate two = Predicate::Compare(kId, Predicate::Op::kGt, Value::Int64(0));
  EXPECT_EQ(Ask({}, {kNumber}, two)->groups[0].totals[0].sum, Value::Int64(kMax - 1));
}

TEST_F(AggregatesTest, MoreGroupsThanAllowedAreAnError) {
  ASSERT_NO_FATAL_FAILURE(Open(1'000'000));
  ASSERT_NO_FATAL_FAILURE(Fill(50));
  const auto got = engine_->Aggregate(table_, {.by = {kId}, .max_groups = 49});
  EXPECT_EQ(got.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(engine_->Aggregate(table_, {.by = {kId}, .max_groups = 50})->groups.size(), 50u);
}

// Writers change the indexed column g_n and n of rows, so that their entries move, while regions
// split and move. By index each region answers with one page, as of one instant; in key order a row
// is counted once however its region is cut into pages.
TEST_F(AggregatesTest, CountARowOnceWhileItMovesInItsIndexAndRegionsSplitAndMove) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  for (const bool by_index : {true, false}) {
    rows_.clear();
    ASSERT_NO_FATAL_FAILURE(Open(by_index ? 1'000'000 : 37));
    ASSERT_NO_FATAL_FAILURE(Fill(400));
    const auto constants = Constants(false);
    ASSERT_EQ(constants.first, rows_.size());
    std::atomic<bool> stop = false;
    std::atomic<uint64_t> changes = 0;
    std::thread writer([&] {
      Random random(seed_ + 1);
      while (!stop) {
        Row row = rows_[random.Uniform(rows_.size())];
        row[kGroup] = Value::Int64(static_cast<int64_t>(random.Uniform(1000)));
        row[kNumber] = Value::Int64(static_cast<int64_t>(random.Uniform(1000)));
        for (const Status& status : engine_->Apply(table_, {{.row = std::move(row)}})) {
          EXPECT_TRUE(status.ok()) << status;
        }
        ++changes;
      }
    });
    uint64_t asked = 0, moved = 0;
    for (int64_t round = 0; round < 24; ++round) {
      // Refused while another change of the region is under way.
      if (round % 4 == 0) moved += SplitAt(16 * round + 7).ok() ? 1 : 0;
      if (round % 4 == 2)
        moved += Await<Result<uint64_t>>(executor_.get(), [&](auto done) {
                   cluster_->Balance(done);
                 }).ok();
      for (int i = 0; i < 4; ++i, ++asked) {
        if (by_index) {
          EXPECT_EQ(CountByIndex(), rows_.size());
        }
        EXPECT_EQ(Constants(by_index), constants);
      }
    }
    stop = true;
    writer.join();
    EXPECT_GT(moved, 4u);
    EXPECT_GT(changes, 0u);
  }
}

// A page of groups that is taken without the position after it, or cut short, is noticed.
TEST_F(AggregatesTest, FaultsBetweenPagesAreNoticed) {
  const auto count_with = [&](bool Faults::*fault) -> uint64_t {
    Faults faults;
    if (fault != nullptr) faults.*fault = true;
    rows_.clear();
    Open(37, faults);
    Fill(100);
    const auto got = Ask({}, {kNumber}, {}, /*use_indexes=*/false);
    return got.ok() ? got->groups[0].count : 0;
  };
  EXPECT_EQ(count_with(nullptr), 100u);
  EXPECT_EQ(count_with(&Faults::page_added_twice), 137u);
  EXPECT_LT(count_with(&Faults::group_lost_between_pages), 100u);
}

}  // namespace
}  // namespace tamis
