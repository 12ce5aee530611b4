// Rows in the order of an index, from every kind of cluster.
#include <algorithm>
#include <set>

#include "tamis/base/random.h"
#include "tamis/query/index_order.h"
#include "tamis/table/codec.h"
#include "tests/cluster/cluster_suite.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

class ClusterOrders : public ClusterSuite {
 protected:
  // Values that are independent of the key.
  static Row Scattered(int i, int rows) {
    return {Value::Text(NameOf(i)), Value::Text("s" + std::to_string(i % 7)),
            Value::Int64(i * 7919LL % rows)};
  }
  void FillScattered(int rows) {
    std::vector<Write> writes;
    for (int i = 0; i < rows; ++i) writes.push_back({.row = Scattered(i, rows)});
    for (const Status& status : engine_->Apply(table_, std::move(writes))) {
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  // With the state of all regions known: where time is real, a lease may end at any moment.
  std::vector<Row> FindRoutedInOrder(const SearchOptions& options, Explain* explain,
                                     uint64_t most_asked) {
    for (int tries = 0;; ++tries) {
      EXPECT_TRUE(engine_->WaitUntilRouted(*table_, ClusterUnderTest::kPatience));
      std::vector<Row> rows = Find(*engine_, options, explain);
      if (explain->regions_asked <= most_asked || tries == 100) return rows;
    }
  }
};

TEST_P(ClusterOrders, TheFirstRowsAreAskedOfTheRegionsThatMayHoldThem) {
  constexpr int kRows = 800;
  // Before there are rows: a daughter takes over the bounds of its parent, until it is recounted.
  for (int i = 100; i < kRows; i += 100) {
    ASSERT_TRUE(kind_->Split(Regions().back().id, KeyOf(i)).ok());
  }
  Spread();
  FillScattered(kRows);
  ASSERT_TRUE(kind_->Reconcile("packages").ok());
  for (const bool descending : {false, true}) {
    for (const int limit : {1, 3}) {
      SearchOptions options{.limit = static_cast<uint64_t>(limit),
                            .order = {{.column = kSize, .descending = descending}}};
      Explain explain;
      const auto most = static_cast<uint64_t>(limit);
      const std::vector<Row> rows = FindRoutedInOrder(options, &explain, most);
      ASSERT_EQ(rows.size(), most);
      for (int i = 0; i < limit; ++i) {
        EXPECT_EQ(rows[i][kSize].int64(), descending ? kRows - 1 - i : i);
      }
      EXPECT_LE(explain.regions_asked, most) << explain.ToText();
      EXPECT_LE(explain.rows_read, most) << explain.ToText();
    }
  }
}

TEST_P(ClusterOrders, ReverseKeyOrderReadsTheLastRows) {
  constexpr int kRows = 300;
  FillScattered(kRows);
  SplitAll(2);
  const Predicate every_seventh =
      Predicate::Compare(kSection, Op::kEq, Value::Text("s3"));  // a column of an index
  const Predicate below = Predicate::Compare(kName, Op::kLt, Value::Text(NameOf(120)));
  for (const bool all : {true, false}) {
    SearchOptions options{.limit = 5, .order = {{.column = kName, .descending = true}}};
    if (!all) options.predicate = below;
    Explain explain;
    const std::vector<Row> rows = Find(*engine_, options, &explain);
    ASSERT_EQ(rows.size(), 5u);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(rows[i][kName], Value::Text(NameOf((all ? kRows : 120) - 1 - i)));
    }
    EXPECT_LE(explain.rows_read, 10u) << explain.ToText();
    EXPECT_LE(explain.regions_asked, 2u) << explain.ToText();
    EXPECT_NE(explain.reason.find("reverse key order"), std::string::npos) << explain.reason;
  }
  Explain explain;
  const std::vector<Row> rows =
      Find(*engine_, {.predicate = every_seventh, .order = {{.column = kName, .descending = true}}},
           &explain);
  ASSERT_EQ(rows.size(), 43u);
  EXPECT_TRUE(std::ranges::is_sorted(
      rows, [](const Row& a, const Row& b) { return a[kName].str() > b[kName].str(); }));
}

TEST_P(ClusterOrders, ACallerThatStopsEndsTheWork) {
  FillScattered(800);
  SplitAll(3);
  ASSERT_TRUE(kind_->Reconcile("packages").ok());
  ASSERT_TRUE(engine_->WaitUntilRouted(*table_, ClusterUnderTest::kPatience));
  RowStream rows = engine_->Search(table_, {.order = {{.column = kSize, .descending = true}}});
  for (int i = 0; i < 2; ++i) {
    const auto row = rows.Next();
    ASSERT_TRUE(row.ok() && row->has_value());
    EXPECT_EQ((**row)[kSize].int64(), 799 - i);
  }
  EXPECT_LT(rows.explain().rows_read, 60u);
}

// Random conditions, orders, limits and columns, while regions are split and moved between two
// rows; NULL, values that are cut in the index, sparse indexes, equal values.
TEST_P(ClusterOrders, AgreesWithSortedRowsWhileRegionsAreSplitAndMoved) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  Open({.small_pages = random.OneIn(2)});
  enum : uint32_t { kId, kA, kB, kC };
  TableSchema schema;
  schema.name = "ordered";
  schema.columns = {{.name = "id", .type = Type::kText, .nullable = false},
                    {.name = "a", .type = Type::kInt64},
                    {.name = "b", .type = Type::kText},
                    {.name = "c", .type = Type::kInt64}};
  schema.key = {kId};
  schema.indexes = {{.name = "a", .columns = {kA}, .nulls = IndexNulls::kSkip},
                    {.name = "b", .columns = {kB}},
                    {.name = "c_a", .columns = {kC, kA}},
                    {.name = "c_b", .columns = {kC, kB}}};
  for (IndexSpec& index : schema.indexes) index.expected_values = 200;
  auto made = kind_->CreateTable(schema);
  ASSERT_TRUE(made.ok()) << made.status();
  const SchemaPtr table = *made;
  std::vector<Row> rows;
  std::vector<Write> writes;
  for (int i = 0; i < 300; ++i) {
    std::string text = random.OneIn(6) ? std::string(kIndexValueLimit - 1 + random.Uniform(3), 'x')
                                       : std::string(1, static_cast<char>('a' + random.Uniform(5)));
    if (random.OneIn(2)) text += std::to_string(random.Uniform(20));
    rows.push_back(
        {Value::Text(NameOf(i)),
         random.OneIn(5) ? Value() : Value::Int64(static_cast<int64_t>(random.Uniform(90)) - 40),
         random.OneIn(8) ? Value() : Value::Text(std::move(text)),
         random.OneIn(9) ? Value() : Value::Int64(random.Uniform(4))});
    writes.push_back({.row = rows.back()});
  }
  for (const Status& status : engine_->Apply(table, std::move(writes))) {
    ASSERT_TRUE(status.ok()) << status;
  }
  const auto servers = kind_->Servers();
  ASSERT_TRUE(servers.ok());
  const auto disturb = [&] {
    auto regions = kind_->Regions("ordered");
    if (!regions.ok() || regions->empty()) return;
    const RegionInfo& region = (*regions)[random.Uniform(regions->size())];
    // Either may be refused, since the region is busy with an earlier one.
    if (random.OneIn(2) && regions->size() < 12) {
      (void)kind_->Split(region.id);
    } else {
      (void)kind_->Move(region.id, (*servers)[random.Uniform(servers->size())]);
    }
  };
  for (int i = 0; i < 60; ++i) {
    std::vector<Predicate> all;
    if (random.OneIn(3))
      all.push_back(Predicate::Compare(kC, Op::kEq, Value::Int64(random.Uniform(5))));
    if (random.OneIn(4))
      all.push_back(Predicate::Compare(kA, Op::kGe, Value::Int64(random.Uniform(40) - 20)));
    if (random.OneIn(5)) all.push_back(Predicate::NotNull(kA));
    if (random.OneIn(8)) all.push_back(Predicate::In(kC, {Value::Int64(1), Value::Int64(3)}));
    if (random.OneIn(8)) all.push_back(Predicate::IsNull(kB));
    if (random.OneIn(8))
      all.push_back(Predicate::Compare(kId, Op::kLt, Value::Text(NameOf(random.Uniform(300)))));
    SearchOptions options{.predicate = Predicate::And(std::move(all))};
    options.order.push_back(
        {.column = 1 + static_cast<uint32_t>(random.Uniform(3)), .descending = random.OneIn(2)});
    if (random.OneIn(5)) options.order[0] = {.column = kId, .descending = true};
    if (random.OneIn(3)) {
      options.order.push_back({.column = static_cast<uint32_t>(random.Uniform(4)),
                               .descending = random.OneIn(3) != options.order[0].descending});
    }
    if (random.OneIn(2)) options.limit = 1 + random.Uniform(40);
    if (random.OneIn(6)) options.first_rows = 1 + random.Uniform(10);
    std::vector<Row> wanted;
    std::ranges::copy_if(rows, std::back_inserter(wanted),
                         [&](const Row& row) { return options.predicate.Matches(row); });
    std::ranges::stable_sort(
        wanted, [&](const Row& a, const Row& b) { return ComesBefore(options.order, a, b); });
    SCOPED_TRACE("search " + std::to_string(i) + ", " + options.predicate.ToString(*table));
    RowStream stream = engine_->Search(table, options);
    std::vector<Row> given;
    const uint64_t disturbed_at = random.OneIn(4) ? random.Uniform(30) : ~uint64_t{0};
    for (;;) {
      if (given.size() == disturbed_at) disturb();
      auto row = stream.Next();
      ASSERT_TRUE(row.ok()) << row.status() << stream.explain().ToText();
      if (!row->has_value()) break;
      given.push_back(**row);
    }
    const size_t size =
        options.limit > 0 ? std::min<size_t>(options.limit, wanted.size()) : wanted.size();
    ASSERT_EQ(given.size(), size) << stream.explain().ToText();
    std::set<std::string> ids;
    for (size_t j = 0; j < size; ++j) {
      EXPECT_FALSE(ComesBefore(options.order, given[j], wanted[j]) ||
                   ComesBefore(options.order, wanted[j], given[j]))
          << "row " << j << "\n"
          << stream.explain().ToText();
      EXPECT_TRUE(options.predicate.Matches(given[j]));
      EXPECT_TRUE(ids.insert(given[j][kId].str()).second) << "given twice";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ClusterOrders, ::testing::ValuesIn(ClusterKinds()), NameOfKind);

}  // namespace
}  // namespace tamis
