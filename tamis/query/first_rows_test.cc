#include "tamis/query/first_rows.h"

#include <gtest/gtest.h>

#include <memory>

namespace tamis {
namespace {

using Op = Predicate::Op;

// A table of (id, a, b, c, d) with an index on (a, b) that includes c.
class FirstRowsTest : public testing::Test {
 protected:
  enum : uint32_t { kId, kA, kB, kC, kD };

  FirstRowsTest() {
    TableSchema schema;
    schema.id = 1;
    schema.name = "t";
    schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                      {.id = 2, .name = "a", .type = Type::kInt64},
                      {.id = 3, .name = "b", .type = Type::kInt64},
                      {.id = 4, .name = "c", .type = Type::kInt64},
                      {.id = 5, .name = "d", .type = Type::kInt64}};
    schema.key = {kId};
    schema.indexes = {{.id = 7, .name = "a_b", .columns = {kA, kB}, .include = {kC}}};
    schema_ = std::make_shared<const TableSchema>(schema);
  }

  bool Applies(SearchOptions options) const {
    options.order = {{.column = kA}};
    return FirstRows::Applies(*schema_, {.index = &schema_->indexes[0], .columns = 1}, options);
  }
  FirstRows Make() const { return {schema_, schema_->indexes[0], {{.column = kA}}}; }
  static Row RowOf(int64_t id, int64_t a, int64_t d = 0) {
    return {Value::Int64(id), Value::Int64(a), Value::Int64(0), Value::Int64(0), Value::Int64(d)};
  }
  static std::vector<int64_t> TakeAll(FirstRows* rows) {
    std::vector<int64_t> ids;
    while (!rows->empty()) ids.push_back(rows->Take()[kId].int64());
    return ids;
  }

  SchemaPtr schema_;
};

TEST_F(FirstRowsTest, AppliesToFewRowsOfWhichEntriesDoNotTellAll) {
  EXPECT_TRUE(Applies({.limit = 10}));
  EXPECT_TRUE(Applies({.first_rows = 10}));
  EXPECT_TRUE(Applies({.columns = std::vector<uint32_t>{kD}, .limit = 10}));
  EXPECT_FALSE(Applies({})) << "a caller that may stop at any row";
  EXPECT_FALSE(Applies({.limit = FirstRows::kMost + 1}));
  EXPECT_FALSE(Applies({.columns = std::vector<uint32_t>{kId, kA, kC}, .limit = 10}))
      << "entries have all of it";
}

TEST_F(FirstRowsTest, AppliesWhereEntriesDecideTheCondition) {
  const Value one = Value::Int64(1);
  EXPECT_TRUE(Applies({.predicate = Predicate::Compare(kB, Op::kEq, one), .limit = 10}));
  EXPECT_TRUE(Applies({.predicate = Predicate::Compare(kC, Op::kEq, one), .limit = 10}));
  EXPECT_FALSE(Applies({.predicate = Predicate::Compare(kD, Op::kEq, one), .limit = 10}));
}

TEST_F(FirstRowsTest, RowsComeInTheOrderOfTheirEntries) {
  FirstRows rows = Make();
  const std::vector<Row> entries = {RowOf(3, 10), RowOf(1, 10), RowOf(2, 20)};
  const KeyRanges keys = rows.KeysOf(entries);
  EXPECT_EQ(keys.ranges().size(), 3u);
  rows.Add(entries, {RowOf(1, 10, 7), RowOf(2, 20, 7), RowOf(3, 10, 7)},
           [](const std::string&) { ADD_FAILURE(); });
  EXPECT_EQ(TakeAll(&rows), (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(rows.given(), 3u);
}

TEST_F(FirstRowsTest, RowsThatAreGoneOrHaveMovedAreLeftOut) {
  FirstRows rows = Make();
  const std::vector<Row> entries = {RowOf(1, 10), RowOf(2, 20), RowOf(3, 30), RowOf(4, 40)};
  std::vector<std::string> left_out;
  rows.Add(entries, {RowOf(4, 40), RowOf(3, 31), RowOf(2, 19)},
           [&](const std::string& key) { left_out.push_back(key); });
  EXPECT_EQ(TakeAll(&rows), (std::vector<int64_t>{4}));
  EXPECT_EQ(left_out.size(), 3u);
  EXPECT_EQ(rows.Missing(4), 3u) << "others take their places";
}

TEST_F(FirstRowsTest, ACallerThatGoesOnGetsAsManyAgain) {
  FirstRows rows = Make();
  EXPECT_EQ(rows.Missing(2), 2u);
  const std::vector<Row> entries = {RowOf(1, 10), RowOf(2, 20)};
  rows.Add(entries, entries, [](const std::string&) {});
  TakeAll(&rows);
  EXPECT_EQ(rows.Missing(2), 2u);
}

}  // namespace
}  // namespace tamis
