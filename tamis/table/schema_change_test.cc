#include "tamis/table/schema_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/table/definition.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Expression Lower() { return {.function = Expression::Function::kLower, .source = 1}; }

TEST(SchemaChangeTest, IdsAreGivenWithinTheTableAndNeverAgain) {
  TableSchema schema = *NewTable(SchemaOfAllTypes(), 9);
  EXPECT_EQ(schema.id, 9u);
  EXPECT_EQ(schema.version, 1u);
  EXPECT_EQ(schema.indexes[1].id, 2u);
  schema = *WithoutIndex(schema, "by_bool");
  EXPECT_EQ(schema.version, 2u);
  schema = *WithIndex(schema, {.name = "other", .columns = {1}});
  EXPECT_EQ(schema.version, 3u);
  EXPECT_EQ(schema.FindIndex("other")->id, 3u);
  EXPECT_EQ(schema.next_index_id, 4u);
  schema = *WithColumn(schema, {.name = "c8", .type = Type::kText});
  EXPECT_EQ(schema.version, 4u);
  EXPECT_EQ(schema.columns.back().id, 8u);
  EXPECT_EQ(ParseSchema(SerializeSchema(schema))->next_index_id, 4u);
}

TEST(SchemaChangeTest, InvalidChangeIsRefused) {
  const TableSchema schema = *NewTable(SchemaOfAllTypes(), 9);
  EXPECT_EQ(WithoutIndex(schema, "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(WithIndex(schema, {.name = "by_bool", .columns = {1}}).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(WithIndex(schema, {.name = "x", .columns = {77}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(WithColumn(schema, {.name = "c1"}).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(WithColumn(schema, {.name = "n", .nullable = false}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(WithColumn(schema, {.name = "Bad Name"}).status().code(), StatusCode::kInvalidArgument);
}

// The table t (id, name, name_lower = lower(name), born) with an index on born alone.
TableSchema WithLower() {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                    {.name = "name", .type = Type::kText},
                    {.name = "name_lower", .type = Type::kText, .expression = Lower()},
                    {.name = "born", .type = Type::kInt64}};
  schema.key = {0};
  schema.indexes = {
      {.name = "born",
       .columns = {3},
       .include = {1},
       .where = Predicate::Not(Predicate::And(
           {Predicate::IsNull(3), Predicate::Compare(1, Predicate::Op::kEq, Value::Text("x"))}))}};
  return *NewTable(schema, 9);
}

TEST(SchemaChangeTest, DroppedColumnKeepsItsPlaceAndGivesUpItsName) {
  const TableSchema before = WithLower();
  const auto after = WithoutColumn(before, "name_lower");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->version, before.version + 1);
  ASSERT_EQ(after->columns.size(), 4u);
  EXPECT_TRUE(after->columns[2].is_dropped());
  EXPECT_EQ(after->columns[2].id, before.columns[2].id);
  EXPECT_EQ(after->columns[2].expression, before.columns[2].expression);
  EXPECT_EQ(after->FindColumn("name_lower"), std::nullopt);
  EXPECT_EQ(after->FindColumn(DroppedColumnName(3)), std::nullopt);
  EXPECT_EQ(after->ToString(), WithoutDroppedColumns(*after).ToString());
  EXPECT_THAT(after->ToString(), Not(HasSubstr("lower")));
  // A file or a server has the mark, too.
  EXPECT_TRUE(ParseSchema(SerializeSchema(*after))->columns[2].is_dropped());
  EXPECT_EQ(WithoutColumn(*after, "name_lower").status().code(), StatusCode::kNotFound);
  const auto named = WithColumn(*after, {.name = "name_lower", .type = Type::kText});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->FindColumn("name_lower"), 4u);
}

TEST(SchemaChangeTest, AddingTheSameExpressionTakesTheDroppedPosition) {
  const TableSchema dropped = *WithoutColumn(WithLower(), "name_lower");
  const auto added =
      WithColumn(dropped, {.name = "small", .type = Type::kText, .expression = Lower()});
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(added->FindColumn("small"), 2u);
  EXPECT_EQ(added->next_column_id, dropped.next_column_id);
  EXPECT_EQ(added->version, dropped.version + 1);
  Expression other = Lower();
  other.function = Expression::Function::kSubstr;
  other.length = 2;
  const auto wider = WithColumn(dropped, {.name = "two", .type = Type::kText, .expression = other});
  ASSERT_TRUE(wider.ok()) << wider.status();
  EXPECT_EQ(wider->FindColumn("two"), 4u);
}

TEST(SchemaChangeTest, OnlyAComputedColumnThatNoIndexUsesIsDropped) {
  TableSchema schema = WithLower();
  const auto refused = [&](const char* column) {
    const Status status = WithoutColumn(schema, column).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    return status.message();
  };
  EXPECT_THAT(refused("id"), HasSubstr("not computed"));
  EXPECT_THAT(refused("born"), HasSubstr("INSERT INTO ... SELECT"));
  EXPECT_EQ(WithoutColumn(schema, "absent").status().code(), StatusCode::kNotFound);
  const Predicate small = Predicate::Compare(2, Predicate::Op::kGe, Value::Text("m"));
  for (const IndexSpec& index : {IndexSpec{.name = "l", .columns = {3, 2}},
                                 IndexSpec{.name = "i", .columns = {3}, .include = {2}},
                                 IndexSpec{.name = "w", .columns = {3}, .where = small}}) {
    schema = *WithIndex(WithLower(), index);
    EXPECT_EQ(refused("name_lower"),
              "cannot drop column \"name_lower\" of table \"t\": it is used by index \"" +
                  index.name + "\"; drop that first: tamis index drop t " + index.name);
    // By a program that knows the schema before the drop.
    const TableSchema dropped = *WithoutColumn(WithLower(), "name_lower");
    const Status late = WithIndex(dropped, index).status();
    EXPECT_EQ(late.code(), StatusCode::kFailedPrecondition) << late;
    EXPECT_THAT(late.message(), HasSubstr("was dropped meanwhile"));
  }
}

TEST(SchemaChangeTest, NamesOfDroppedColumnsAreNotGivenToComputedOnes) {
  const TableSchema schema = WithLower();
  const Column computed{.name = "dropped_column_77", .type = Type::kText, .expression = Lower()};
  EXPECT_EQ(WithColumn(schema, computed).status().code(), StatusCode::kInvalidArgument);
  TableSchema wanted = schema;
  wanted.columns[2].name = "dropped_column_3";
  EXPECT_EQ(NewTable(wanted, 9).status().code(), StatusCode::kInvalidArgument);
  // A column of a file may have such a name.
  const auto stored = WithColumn(schema, {.name = "dropped_column_3", .type = Type::kText});
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_THAT(WithoutColumn(*stored, "name_lower").status().message(),
              HasSubstr("another column has that name"));
  EXPECT_EQ(WithColumn(*WithoutColumn(schema, "name_lower"),
                       {.name = "dropped_column_3", .type = Type::kText})
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST(SchemaChangeTest, TheShownTableHasOtherPositionsAndTheSameMeaning) {
  const TableSchema before = WithLower();
  const TableSchema shown = WithoutDroppedColumns(*WithoutColumn(before, "name_lower"));
  ASSERT_TRUE(shown.Validate().ok()) << shown.Validate();
  ASSERT_EQ(shown.columns.size(), 3u);
  const IndexSpec& index = shown.indexes[0];
  EXPECT_EQ(index.columns, std::vector<uint32_t>{2});
  EXPECT_EQ(index.include, std::vector<uint32_t>{1});
  EXPECT_EQ(index.where.ToString(shown), before.indexes[0].where.ToString(before));
  EXPECT_EQ(WithoutDroppedColumns(before).ToString(), before.ToString());
  TableSchema wanted = before;
  wanted.columns.erase(wanted.columns.begin() + 2);
  wanted.indexes = shown.indexes;
  const TableSchema dropped = *WithoutColumn(before, "name_lower");
  EXPECT_TRUE(CheckSameDefinition(dropped, wanted).ok()) << CheckSameDefinition(dropped, wanted);
  // Software that does not know dropped columns has made an index of one.
  TableSchema used = dropped;
  used.indexes.push_back({.id = used.next_index_id++, .name = "l", .columns = {2}});
  EXPECT_EQ(WithoutDroppedColumns(used).columns.size(), 4u);
  EXPECT_TRUE(WithoutDroppedColumns(used).Validate().ok());
  EXPECT_TRUE(ParseSchema(SerializeSchema(used)).ok());
}

// A filter of a region cannot hold more; a table that exists may expect more.
TEST(SchemaChangeTest, MoreExpectedValuesThanAFilterHoldsAreRefused) {
  constexpr uint64_t kGreatest = uint64_t{1} << 31;
  TableSchema schema = *NewTable(SchemaOfAllTypes(), 9);
  EXPECT_TRUE(WithIndex(schema, {.name = "x", .columns = {1}, .expected_values = kGreatest}).ok());
  const auto index =
      WithIndex(schema, {.name = "x", .columns = {1}, .expected_values = kGreatest + 1});
  EXPECT_THAT(index.status().message(),
              HasSubstr("2147483649 expected values of a region are more than the 2147483648"));
  schema.indexes[0].expected_values = kGreatest + 1;
  EXPECT_EQ(NewTable(schema, 9).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(ParseSchema(SerializeSchema(schema)).ok());
}

}  // namespace
}  // namespace tamis
