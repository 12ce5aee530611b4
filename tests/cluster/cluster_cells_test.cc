// Ranges of values: cells that are fitted to an index exclude the regions that hold none of them,
// and minima and maxima follow deletes, in every kind of cluster that can do so.
#include <gmock/gmock.h>

#include "tamis/query/cell_fit.h"
#include "tests/cluster/cluster_suite.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

class ClusterCells : public ClusterSuite {
 protected:
  static constexpr int kRows = 1600;
  static constexpr int kStep = 100;  // between two values

  // Values that are independent of the key.
  static Row Scattered(int i) {
    return {Value::Text(NameOf(i)), Value(), Value::Int64(i * 7919LL % kRows * kStep)};
  }
  void FillScattered() {
    for (int i = 200; i < kRows; i += 200) {
      ASSERT_TRUE(kind_->Split(Regions().back().id, KeyOf(i)).ok());
    }
    std::vector<Write> writes;
    for (int i = 0; i < kRows; ++i) writes.push_back({.row = Scattered(i)});
    for (const Status& status : engine_->Apply(table_, std::move(writes))) {
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_TRUE(kind_->Reconcile("packages").ok());
  }
  Status Fit(uint32_t cells_per_value) {
    const auto job = kind_->Run({.kind = JobSpec::Kind::kFitCells,
                                 .table = "packages",
                                 .index = "size",
                                 .cells_per_value = cells_per_value});
    if (!job.ok()) return job.status();
    TAMIS_RETURN_IF_ERROR(kind_->Reconcile("packages").status());
    engine_->ForgetTable("packages");  // it may be kept as it was
    auto table = engine_->Table("packages");
    if (table.ok()) table_ = *table;
    return table.status();
  }
  static Predicate Between(int64_t low, int64_t high) {
    return Predicate::And({Predicate::Compare(kSize, Op::kGe, Value::Int64(low)),
                           Predicate::Compare(kSize, Op::kLe, Value::Int64(high))});
  }
  // How many regions were asked for ranges between two values, which none holds a value of.
  uint64_t AskedBetweenValues(uint64_t* by_cells) {
    uint64_t asked = 0;
    for (int i = 100; i < kRows; i += 100) {
      Explain explain;
      EXPECT_TRUE(FindRouted(Between(i * kStep + 10, i * kStep + 20), &explain).empty());
      asked += explain.regions_asked;
      *by_cells += explain.regions_excluded_by_cells;
    }
    return asked;
  }
  // Asks until no region is asked: servers look for what has become empty in the background.
  bool IsAskedOfNone(const Predicate& range) {
    const Time end = kind_->Soon().deadline;
    Explain explain;
    do {
      // A virtual clock stands still while a search is answered.
      if (kind_->has_virtual_clock()) Sleep(&kind_->executor(), std::chrono::milliseconds(100));
      EXPECT_TRUE(FindRouted(range, &explain).empty());
    } while (explain.regions_asked > 0 && !HasFailure() && kind_->executor().Now() < end);
    return explain.regions_asked == 0;
  }
};

TEST_P(ClusterCells, RangesAskFewRegionsOnceCellsAreFitted) {
  FillScattered();
  const Status fitted = Fit(16);
  ASSERT_TRUE(fitted.ok()) << fitted;
  ASSERT_NE(table_->FindIndex("size")->cell_map, nullptr);
  uint64_t by_cells = 0;
  // There are 15 ranges and 8 regions; each cell has a value with a chance of 1/16.
  EXPECT_LE(AskedBetweenValues(&by_cells), 25u);
  EXPECT_GE(by_cells, 90u);
  Explain explain;
  EXPECT_EQ(FindRouted(Between(500, 500 + 3 * kStep), &explain).size(), 4u);
  EXPECT_LE(explain.regions_asked, 6u);
  EXPECT_THAT(explain.ToLine(), ::testing::HasSubstr(" by cells, "));

  // Values between the others, and beyond all that were there.
  for (const int64_t value : {10'010, 50'015, kRows * kStep + 12'345}) {
    Row row = Scattered(3);
    row[kSize] = Value::Int64(value);
    ASSERT_TRUE(Put(*engine_, row).ok());
    EXPECT_EQ(Find(Between(value - 5, value + 5)), std::vector<Row>{row});
  }
  ASSERT_TRUE(Put(*engine_, Scattered(3)).ok());

  // Daughters and merged regions follow the same map.
  ASSERT_TRUE(kind_->Split(Regions().front().id, KeyOf(100)).ok());
  ASSERT_TRUE(kind_->Reconcile("packages").ok());
  by_cells = 0;
  EXPECT_LE(AskedBetweenValues(&by_cells), 28u);
  for (int i = 0; i < kRows; i += 50) {
    const Row row = Scattered(i);
    const int64_t size = row[kSize].int64();
    EXPECT_EQ(Find(Between(size - 1, size + 1)), std::vector<Row>{row});
  }

  // By another map, and by none.
  ASSERT_TRUE(Fit(4).ok());
  EXPECT_EQ(Find(Between(500, 500 + 3 * kStep)).size(), 4u);
  ASSERT_TRUE(Fit(0).ok());
  EXPECT_EQ(table_->FindIndex("size")->cell_map, nullptr);
  by_cells = 0;
  EXPECT_GE(AskedBetweenValues(&by_cells), 100u);
  EXPECT_EQ(by_cells, 0u);
}

TEST_P(ClusterCells, ValuesThatGrowOutgrowTheirCells) {
  FillScattered();
  const auto outgrown = [&](uint64_t rows) {
    const auto result = OutgrowsCells(engine_.get(), table_, *table_->FindIndex("size"),
                                      kind_->Soon().deadline, rows);
    EXPECT_TRUE(result.has_value());
    return result.value_or(false);
  };
  EXPECT_FALSE(outgrown(100)) << "it has no cells";
  ASSERT_TRUE(Fit(4).ok());
  EXPECT_FALSE(outgrown(100));
  // A quarter more cells than values are there for larger ones.
  const auto put = [&](int from, int64_t step) {
    std::vector<Write> writes;
    for (int i = 0; i < 150; ++i) {
      writes.push_back({.row = {Value::Text(NameOf(from + i)), Value(), Value::Int64(i * step)}});
    }
    for (const Status& status : engine_->Apply(table_, std::move(writes))) {
      ASSERT_TRUE(status.ok()) << status;
    }
  };
  put(10'000, int64_t{10} * kRows * kStep);
  EXPECT_TRUE(outgrown(100));
  EXPECT_FALSE(outgrown(1000)) << "they are not so many";
  ASSERT_TRUE(Fit(4).ok());
  EXPECT_FALSE(outgrown(100));
  put(20'000, -1);
  EXPECT_TRUE(outgrown(100)) << "below all cells";
}

TEST_P(ClusterCells, OutgrowsCellsEndsAtItsDeadlineWhenNoRegionAnswers) {
  if (!Can(Capability::kPauseServer) || !kind_->has_virtual_clock()) {
    GTEST_SKIP() << "no server pauses, or real time would pass";
  }
  FillScattered();
  ASSERT_TRUE(Fit(4).ok());
  const IndexSpec& index = *table_->FindIndex("size");
  const Executor& executor = kind_->executor();
  EXPECT_EQ(OutgrowsCells(engine_.get(), table_, index, executor.Now() + kCellFitTime), false);
  EXPECT_EQ(OutgrowsCells(engine_.get(), table_, index, executor.Now()), std::nullopt);
  const auto servers = kind_->Servers();
  ASSERT_TRUE(servers.ok());
  for (const std::string& server : *servers) ASSERT_TRUE(kind_->Pause(server).ok());
  const Time deadline = executor.Now() + kCellFitTime;
  EXPECT_EQ(OutgrowsCells(engine_.get(), table_, index, deadline), std::nullopt);
  EXPECT_LE(executor.Now(), deadline + std::chrono::milliseconds(100));
  for (const std::string& server : *servers) ASSERT_TRUE(kind_->Resume(server).ok());
  EXPECT_EQ(OutgrowsCells(engine_.get(), table_, index, kind_->Soon().deadline), false);
}

TEST_P(ClusterCells, RangesFollowRemovals) {
  FillScattered();
  // The largest value of a region comes and goes.
  Row row = Scattered(3);
  const int64_t above = kRows * kStep + 1'000'000;
  const Predicate from_above = Predicate::Compare(kSize, Op::kGe, Value::Int64(above));
  ASSERT_TRUE(IsAskedOfNone(from_above));
  row[kSize] = Value::Int64(above);
  ASSERT_TRUE(Put(*engine_, row).ok());
  EXPECT_EQ(Find(from_above), std::vector<Row>{row});
  ASSERT_TRUE(Put(*engine_, Scattered(3)).ok());
  EXPECT_TRUE(IsAskedOfNone(from_above));

  // The only value of a cell comes and goes.
  ASSERT_TRUE(Fit(16).ok());
  Explain explain{.regions_asked = 1};
  int64_t value = 0;
  while (explain.regions_asked > 0) {
    value += kStep;
    ASSERT_LT(value, kRows * kStep);
    EXPECT_TRUE(FindRouted(Between(value + 50, value + 51), &explain).empty());
  }
  row[kSize] = Value::Int64(value + 50);
  ASSERT_TRUE(Put(*engine_, row).ok());
  EXPECT_EQ(Find(Between(value + 50, value + 51)), std::vector<Row>{row});
  ASSERT_TRUE(Put(*engine_, Scattered(3)).ok());
  EXPECT_TRUE(IsAskedOfNone(Between(value + 50, value + 51)));
}

INSTANTIATE_TEST_SUITE_P(Every, ClusterCells, ::testing::ValuesIn(ClusterKinds()), NameOfKind);

}  // namespace
}  // namespace tamis
