// Changes of tables, indexes and columns on every kind of cluster.
#include "tests/cluster/cluster_suite.h"

namespace tamis {
namespace {

using std::chrono::seconds;
using Op = Predicate::Op;

TEST_P(ClusterSuite, AnIndexComesAndGoesWhileTheTableIsInUse) {
  Fill(300);
  SplitAll(1);
  ASSERT_TRUE(engine_->WaitUntilRouted(*table_, seconds(60)));
  const IndexSpec both{.name = "both", .columns = {kSection, kSize}, .expected_values = 500};
  for (int again = 0; again < 2; ++again) {
    const auto made = kind_->Ask<TableSchema>(
        [&](auto done) { kind_->admin().CreateIndex("packages", both, done); });
    ASSERT_TRUE(made.ok()) << made.status();
    // By the engine's old schema, by a search that may scan, and when it is complete.
    const Row row{Value::Text("late" + std::to_string(again)), Value::Text("s1"),
                  Value::Int64(5000 + again)};
    EXPECT_TRUE(Put(*engine_, row).ok());
    engine_->ForgetTable("packages");
    table_ = *engine_->Table("packages");
    const auto find = [&] { return Find(Predicate::And({Section("s1"), Size(5000 + again)})); };
    EXPECT_EQ(find(), std::vector<Row>{row});
    ExpectClean(301 + static_cast<uint64_t>(again));
    const auto progress = kind_->Ask<IndexProgress>(
        [&](auto done) { kind_->admin().GetIndexProgress("packages", "both", done); });
    ASSERT_TRUE(progress.ok()) << progress.status();
    EXPECT_EQ(progress->regions, 2u);
    EXPECT_EQ(progress->complete, 2u);
    EXPECT_EQ(find(), std::vector<Row>{row});
    const auto dropped = kind_->Ask<TableSchema>(
        [&](auto done) { kind_->admin().DropIndex("packages", "both", done); });
    ASSERT_TRUE(dropped.ok()) << dropped.status();
    EXPECT_EQ(find(), std::vector<Row>{row});
    table_ = std::make_shared<const TableSchema>(*dropped);
    engine_->ForgetTable("packages");
    EXPECT_EQ(find(), std::vector<Row>{row});
  }
}

TEST_P(ClusterSuite, IndexWithIncludedColumnGivesRowsAsTheyAreNow) {
  Fill(200);
  const auto made = kind_->Ask<TableSchema>([&](auto done) {
    kind_->admin().CreateIndex(
        "packages",
        {.name = "with", .columns = {kSection}, .expected_values = 100, .include = {kSize}}, done);
  });
  ASSERT_TRUE(made.ok()) << made.status();
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  ExpectClean(200);
  std::vector<Row> expected;
  for (int i = 100; i < 200; ++i) expected.push_back(RowOf(i));
  const auto expect_found = [&] {
    Explain explain;
    auto rows = Find(Section("s1"), &explain);
    std::ranges::sort(rows);
    std::ranges::sort(expected);
    EXPECT_EQ(rows, expected);
    EXPECT_EQ(explain.rows_read, 0u) << explain.ToText();
    EXPECT_EQ(explain.rows_from_entries, expected.size()) << explain.ToText();
  };
  expect_found();
  // The entry's key stays.
  expected[7][kSize] = Value::Int64(-5);
  ASSERT_TRUE(Put(*engine_, expected[7]).ok());
  expected[3][kSize] = Value();
  ASSERT_TRUE(Put(*engine_, expected[3]).ok());
  expect_found();
  ExpectClean(200);
}

TEST_P(ClusterSuite, PartialIndexHasTheRowsOfItsConditionAlone) {
  Fill(300);
  SplitAll(1);
  ASSERT_TRUE(engine_->WaitUntilRouted(*table_, seconds(60)));
  const Predicate large = Predicate::Compare(kSize, Op::kGe, Value::Int64(150));
  const auto made = kind_->Ask<TableSchema>([&](auto done) {
    kind_->admin().CreateIndex(
        "packages",
        {.name = "large", .columns = {kSection}, .expected_values = 100, .where = large}, done);
  });
  ASSERT_TRUE(made.ok()) << made.status();
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  const auto entries = [&] {
    const auto report = kind_->Reconcile("packages");
    EXPECT_TRUE(report.ok()) << report.status();
    const auto progress = kind_->Ask<IndexProgress>(
        [&](auto done) { kind_->admin().GetIndexProgress("packages", "large", done); });
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.ok() ? progress->entries : 0;
  };
  EXPECT_EQ(entries(), 150u);
  Explain explain;
  EXPECT_EQ(Find(Predicate::And({Section("s1"), large}), &explain).size(), 50u);
  EXPECT_NE(explain.index.find("large"), std::string::npos) << explain.ToText();
  EXPECT_EQ(Find(Section("s1"), &explain).size(), 100u);
  EXPECT_EQ(explain.index, "section");
  EXPECT_NE(explain.reason.find("index large is not used"), std::string::npos) << explain.reason;
  // One row comes into the condition and one leaves it.
  Row comes = RowOf(110), leaves = RowOf(190);
  comes[kSize] = Value::Int64(1000);
  leaves[kSize] = Value();
  ASSERT_TRUE(Put(*engine_, comes).ok());
  EXPECT_EQ(Find(Predicate::And({Section("s1"), large})).size(), 51u);
  ASSERT_TRUE(Put(*engine_, leaves).ok());
  EXPECT_EQ(Find(Predicate::And({Section("s1"), large})).size(), 50u);
  EXPECT_EQ(Find(Predicate::And({Section("s1"), Size(1000)})), std::vector<Row>{comes});
  EXPECT_EQ(entries(), 150u);
}

TEST_P(ClusterSuite, AColumnIsAddedUnderACoordinatorThatKnowsAnOlderSchema) {
  Fill(50);
  const auto other = StartEngine();
  const SchemaPtr old = *other->Table("packages");
  const auto added = kind_->Ask<TableSchema>([&](auto done) {
    kind_->admin().AddColumn("packages", {.name = "extra", .type = Type::kInt64}, done);
  });
  ASSERT_TRUE(added.ok()) << added.status();
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  ASSERT_EQ(table_->columns.size(), 4u);
  Row row = RowOf(7);
  row.push_back(Value::Int64(99));
  ASSERT_TRUE(Put(*engine_, row).ok());
  EXPECT_EQ(Find(Predicate::Compare(3, Op::kEq, Value::Int64(99))), std::vector<Row>{row});
  EXPECT_EQ(Find(Predicate::IsNull(3)).size(), 49u);
  // An update of a column by the old schema leaves the new column as it is.
  Row update = RowOf(7);
  update[kSize] = Value::Int64(-7);
  const Status updated =
      other->Apply(old, {{.kind = Write::Kind::kUpdate, .row = update, .columns = {kSize}}})
          .front();
  ASSERT_TRUE(updated.ok()) << updated;
  row[kSize] = Value::Int64(-7);
  EXPECT_EQ(Find(Size(-7)), std::vector<Row>{row});
}

TEST_P(ClusterSuite, AComputedColumnAndItsIndexComeWhileTheTableIsInUse) {
  constexpr uint32_t kLower = 3;
  Fill(300);
  SplitAll(1);
  const auto other = StartEngine();
  const SchemaPtr old = *other->Table("packages");
  const Expression lower{.function = Expression::Function::kLower, .source = kSection};
  const auto added = kind_->Ask<TableSchema>([&](auto done) {
    kind_->admin().AddColumn(
        "packages", {.name = "section_lower", .type = Type::kText, .expression = lower}, done);
  });
  ASSERT_TRUE(added.ok()) << added.status();
  const IndexSpec index{.name = "section_lower",
                        .columns = {kLower},
                        .nulls = IndexNulls::kSkip,
                        .expected_values = 100};
  const auto made = kind_->Ask<TableSchema>(
      [&](auto done) { kind_->admin().CreateIndex("packages", index, done); });
  ASSERT_TRUE(made.ok()) << made.status();
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  const auto count = [&](const char* text) {
    const auto rows = Find(Predicate::Compare(kLower, Op::kEq, Value::Text(text)));
    for (const Row& row : rows) EXPECT_EQ(row[kLower], Value::Text(text));
    return rows.size();
  };
  EXPECT_EQ(count("s1"), 100u);
  // Writers do not know of the column, or do not set it.
  Row row = RowOf(5);
  row[kSection] = Value::Text("S1");
  row.emplace_back();
  ASSERT_TRUE(Put(*engine_, row).ok());
  EXPECT_EQ(count("s1"), 101u);
  Row update = RowOf(6);
  update[kSection] = Value::Text("S2");
  const Status updated =
      other->Apply(old, {{.kind = Write::Kind::kUpdate, .row = update, .columns = {kSection}}})
          .front();
  ASSERT_TRUE(updated.ok()) << updated;
  EXPECT_EQ(count("s2"), 101u);
  EXPECT_EQ(count("s0"), 98u);
  const auto set =
      engine_->Apply(table_, {{.kind = Write::Kind::kUpdate, .row = row, .columns = {kLower}}});
  EXPECT_EQ(set.front().code(), StatusCode::kInvalidArgument) << set.front();
  SplitAll(1);
  ExpectClean(300);
  EXPECT_EQ(count("s1"), 101u);
  const auto dropped = kind_->Ask<TableSchema>(
      [&](auto done) { kind_->admin().DropIndex("packages", "section_lower", done); });
  ASSERT_TRUE(dropped.ok()) << dropped.status();
  EXPECT_EQ(count("s1"), 101u);
}

TEST_P(ClusterSuite, AComputedColumnIsDroppedUnderACoordinatorThatUsesIt) {
  constexpr uint32_t kLower = 3;
  Fill(300);
  SplitAll(1);
  const auto change = [&](auto call) {
    return kind_->Ask<TableSchema>([&](auto done) { call(kind_->admin(), done); });
  };
  const auto drop = [](const char* column) {
    return [=](ClusterAdmin& admin, auto done) { admin.DropColumn("packages", column, done); };
  };
  const IndexSpec index{.name = "small", .columns = {kLower}, .expected_values = 100};
  const auto create_index = [&](ClusterAdmin& admin, auto done) {
    admin.CreateIndex("packages", index, done);
  };
  const tamis::Column computed{
      .name = "section_lower",
      .type = Type::kText,
      .expression = Expression{.function = Expression::Function::kLower, .source = kSection}};
  const auto added =
      change([&](ClusterAdmin& admin, auto done) { admin.AddColumn("packages", computed, done); });
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_TRUE(change(create_index).ok());
  EXPECT_EQ(change(drop("section_lower")).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(change(drop("section")).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(change(drop("absent")).status().code(), StatusCode::kNotFound);
  const auto without_index =
      change([](ClusterAdmin& admin, auto done) { admin.DropIndex("packages", "small", done); });
  ASSERT_TRUE(without_index.ok()) << without_index.status();
  const auto other = StartEngine();
  const SchemaPtr old = *other->Table("packages");
  ASSERT_EQ(old->FindColumn("section_lower"), kLower);

  const auto dropped = change(drop("section_lower"));
  ASSERT_TRUE(dropped.ok()) << dropped.status();
  EXPECT_EQ(dropped->FindColumn("section_lower"), std::nullopt);
  // It is done, and another call, which may be a retry of that, says so.
  EXPECT_EQ(change(drop("section_lower")).status().code(), StatusCode::kNotFound);
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  EXPECT_TRUE(table_->columns[kLower].is_dropped());
  EXPECT_EQ(Find(Section("s1")).size(), 100u);
  // The coordinator that knows the column goes on using it, and writes.
  const auto count = [&](const char* text) {
    RowStream rows =
        other->Search(old, {.predicate = Predicate::Compare(kLower, Op::kEq, Value::Text(text))});
    size_t found = 0;
    while (auto row = *rows.Next()) {
      EXPECT_EQ((*row)[kLower], Value::Text(text));
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("s1"), 100u);
  Row row = RowOf(5);
  row[kSection] = Value::Text("S1");
  row.resize(old->columns.size());
  ASSERT_TRUE(Put(*other, row).ok());
  EXPECT_EQ(count("s1"), 101u);
  // An index by the position that it knows is refused.
  EXPECT_EQ(change(create_index).status().code(), StatusCode::kFailedPrecondition);

  // The name is free for a column of another kind, and the expression for another name.
  const auto named = change([](ClusterAdmin& admin, auto done) {
    admin.AddColumn("packages", {.name = "section_lower", .type = Type::kInt64}, done);
  });
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->FindColumn("section_lower"), kLower + 1);
  tamis::Column again = computed;
  again.name = "small";
  const auto back =
      change([&](ClusterAdmin& admin, auto done) { admin.AddColumn("packages", again, done); });
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->FindColumn("small"), kLower);
  const auto indexed = change(create_index);
  ASSERT_TRUE(indexed.ok()) << indexed.status();
  EXPECT_EQ(count("s1"), 101u);
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  EXPECT_EQ(Find(Predicate::Compare(kLower, Op::kEq, Value::Text("s1"))).size(), 101u);
  ExpectClean(300);
}

TEST_P(ClusterSuite, ATableThatIsMadeAnewUnderItsNameIsEmpty) {
  Fill(100);
  const TableSchema schema = *table_;
  const Status dropped = AwaitStatus(&kind_->executor(), kind_->Soon(), [&](auto done) {
    kind_->admin().DropTable("packages", {}, done);
  });
  ASSERT_TRUE(dropped.ok()) << dropped;
  EXPECT_EQ(kind_->Regions("packages").status(), NotFound("no table \"packages\""));
  TableSchema again;
  again.name = schema.name;
  again.columns = schema.columns;
  again.key = schema.key;
  for (const IndexSpec& index : schema.indexes) {
    again.indexes.push_back({.name = index.name, .columns = index.columns});
  }
  const auto made = kind_->CreateTable(again);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_NE((*made)->id, schema.id);
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  EXPECT_TRUE(Find(Predicate::True()).empty());
  Fill(50);
  ExpectAll(50);
  EXPECT_EQ(kind_->CreateTable(again).status().code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace tamis
