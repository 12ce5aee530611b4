#include "tamis/sql/gathered_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tamis {
namespace {

RowGroup GroupOf(int64_t value, uint64_t count) {
  return {.row = {Value::Int64(value)}, .count = count, .has_key = false};
}

TEST(GatheredGroupsTest, AddsUpEachCombinationAndGivesThemInOrder) {
  for (const bool descending : {false, true}) {
    GatheredGroups groups;
    EXPECT_TRUE(groups.Add("b", GroupOf(2, 10)));
    EXPECT_TRUE(groups.Add("c", GroupOf(3, 1)));
    EXPECT_TRUE(groups.Add("a", GroupOf(1, 5)));
    EXPECT_TRUE(groups.Add("b", GroupOf(2, 7)));
    groups.Sort(std::vector<OrderTerm>{{.column = 0, .descending = descending}});
    std::vector<std::pair<Value, uint64_t>> given;
    while (auto group = groups.Take()) given.emplace_back(group->row[0], group->count);
    std::vector<std::pair<Value, uint64_t>> expected = {
        {Value::Int64(1), 5}, {Value::Int64(2), 17}, {Value::Int64(3), 1}};
    if (descending) std::ranges::reverse(expected);
    EXPECT_EQ(given, expected);
  }
}

TEST(GatheredGroupsTest, RefusesCombinationsBeyondItsBoundsOnly) {
  GatheredGroups groups(2);
  EXPECT_TRUE(groups.Add("a", GroupOf(1, 1)));
  EXPECT_TRUE(groups.Add("b", GroupOf(2, 1)));
  EXPECT_FALSE(groups.Add("c", GroupOf(3, 1)));
  EXPECT_TRUE(groups.Add("a", GroupOf(1, 1)));
  GatheredGroups long_ones;
  EXPECT_TRUE(long_ones.Add(std::string(10 << 20, 'a'), GroupOf(1, 1)));
  EXPECT_FALSE(long_ones.Add(std::string(10 << 20, 'b'), GroupOf(2, 1)));
}

}  // namespace
}  // namespace tamis
