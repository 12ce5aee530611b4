#include "tamis/query/index_order.h"

#include <gtest/gtest.h>

#include <set>

namespace tamis {
namespace {

enum : uint32_t { kId, kA, kB, kC };

struct Facts {
  std::set<uint32_t> held = {};
  std::set<uint32_t> null = {};
  std::set<uint32_t> not_null = {};
};

class IndexOrderTest : public testing::Test {
 protected:
  IndexOrderTest() {
    schema_.name = "t";
    schema_.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                       {.name = "a", .type = Type::kInt64},
                       {.name = "b", .type = Type::kInt64},
                       {.name = "c", .type = Type::kInt64}};
    schema_.key = {kId};
    schema_.indexes = {{.id = 1, .name = "a_b", .columns = {kA, kB}},
                       {.id = 2, .name = "c", .columns = {kC}, .nulls = IndexNulls::kSkip}};
  }

  // "a_b", "a_b DESC", "c DESC, then NULL", "".
  std::string Find(const std::vector<OrderTerm>& order, const Facts& facts = {}) const {
    const auto in = [](const std::set<uint32_t>& columns) {
      return [&columns](uint32_t column) { return columns.contains(column); };
    };
    const auto found = FindIndexOrder(
        schema_, order,
        {.is_held = in(facts.held), .is_null = in(facts.null), .is_not_null = in(facts.not_null)});
    if (!found.has_value()) return "";
    return found->index->name + (found->descending ? " DESC" : "") +
           (found->nulls_follow ? ", then NULL" : "");
  }

  TableSchema schema_;
};

TEST_F(IndexOrderTest, LeadingColumnsInOneDirection) {
  EXPECT_EQ(Find({{kA}}), "a_b");
  EXPECT_EQ(Find({{kA, true}}), "a_b DESC");
  EXPECT_EQ(Find({{kA}, {kB}}), "a_b");
  EXPECT_EQ(Find({{kA, true}, {kB, true}}), "a_b DESC");
  EXPECT_EQ(Find({{kA}, {kB, true}}), "");
  EXPECT_EQ(Find({{kB}}), "");
  EXPECT_EQ(Find({{kA}, {kC}}), "");
}

TEST_F(IndexOrderTest, TheRowKeyFollows) {
  EXPECT_EQ(Find({{kA}, {kB}, {kId}}), "a_b");
  EXPECT_EQ(Find({{kA}, {kId}}), "") << "b is in between";
}

TEST_F(IndexOrderTest, ColumnsWithOneValueMayBeAnywhereInTheIndex) {
  EXPECT_EQ(Find({{kB}}, {.held = {kA}}), "a_b");
  EXPECT_EQ(Find({{kB, true}, {kA}}, {.held = {kA}}), "a_b DESC");
  EXPECT_EQ(Find({{kB}}, {.null = {kA}}), "a_b");
  EXPECT_EQ(Find({{kA}, {kId}}, {.held = {kB}}), "a_b");
  EXPECT_EQ(Find({{kA}}, {.held = {kA}}), "") << "nothing is to be ordered";
}

TEST_F(IndexOrderTest, ASparseIndexHasNoRowsWithNull) {
  EXPECT_EQ(Find({{kC}}), "") << "NULL comes first";
  EXPECT_EQ(Find({{kC}}, {.not_null = {kC}}), "c");
  EXPECT_EQ(Find({{kC, true}}), "c DESC, then NULL");
  EXPECT_EQ(Find({{kC, true}}, {.not_null = {kC}}), "c DESC");
  EXPECT_EQ(Find({{kC, true}, {kId, true}}), "") << "rows with NULL are in no order";
  EXPECT_EQ(Find({{kId}}, {.held = {kC}}), "c");
  EXPECT_EQ(Find({{kId}}, {.null = {kC}}), "");
}

TEST_F(IndexOrderTest, ComesBeforeComparesWholeValuesAndPutsNullFirst) {
  const Row null = {Value::Int64(1), Value(), Value::Int64(2)};
  const Row small = {Value::Int64(1), Value::Int64(-5), Value::Int64(2)};
  EXPECT_TRUE(ComesBefore(std::vector<OrderTerm>{{kA}}, null, small));
  EXPECT_FALSE(ComesBefore(std::vector<OrderTerm>{{kA}}, small, null));
  EXPECT_TRUE(ComesBefore(std::vector<OrderTerm>{{kA, true}}, small, null));
  EXPECT_FALSE(ComesBefore(std::vector<OrderTerm>{{kB}}, null, small));
}

}  // namespace
}  // namespace tamis
