#include "tamis/table/column_totals.h"

#include <gtest/gtest.h>

#include <limits>

#include "tamis/base/random.h"
#include "tamis/table/group_totals.h"

namespace tamis {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

Value DecimalValue(const std::string& text) { return *Value::Decimal(text); }

std::string SumOfDecimals(const std::vector<std::pair<std::string, uint64_t>>& values) {
  ColumnTotals totals(Type::kDecimal);
  for (const auto& [text, count] : values) totals.Add(DecimalValue(text), count);
  return totals.Sum()->ToString();
}

TEST(ColumnTotalsTest, AnIntegerSumIsAnErrorExactlyIfTheFinalSumDoesNotFit) {
  ColumnTotals totals(Type::kInt64);
  EXPECT_TRUE(totals.Sum()->is_null());
  totals.Add(Value::Int64(kMax), 1000);
  EXPECT_FALSE(totals.Sum().ok());
  totals.Add(Value::Int64(kMin), 999);
  totals.Add(Value::Int64(999), 1);
  EXPECT_EQ(*totals.Sum(), Value::Int64(kMax));
  totals.Add(Value::Int64(1), 1);
  EXPECT_EQ(totals.Sum().status().code(), StatusCode::kInvalidArgument);
  totals.Add(Value(), 5);
  EXPECT_EQ(totals.state().values, 2001u);
  EXPECT_EQ(totals.state().least, Value::Int64(kMin));
  EXPECT_EQ(totals.state().greatest, Value::Int64(kMax));
}

TEST(ColumnTotalsTest, DecimalSumsAreExact) {
  EXPECT_EQ(SumOfDecimals({{"0.1", 3}}), "0.3");
  EXPECT_EQ(SumOfDecimals({{"1.10", 1}, {"-1.1", 1}}), "0");
  EXPECT_EQ(SumOfDecimals({{"-12345678901234567890.5", 2}, {"1", 1}}), "-24691357802469135780");
  EXPECT_EQ(SumOfDecimals({{"1000000000", 1}, {"-0.000000001", 1}}), "999999999.999999999");
  EXPECT_EQ(SumOfDecimals({{"1e30", 1}, {"1e-30", 1}, {"-1e30", 1}}), "1e-30");
  EXPECT_EQ(SumOfDecimals({{"7", uint64_t{1} << 62}}), "32281802128991715328");
}

// Beside integers: cents summed as decimals and as int64.
TEST(ColumnTotalsTest, DecimalSumsAreThoseOfIntegers) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    ColumnTotals decimals(Type::kDecimal), integers(Type::kInt64);
    for (uint64_t n = random.Uniform(20) + 1; n > 0; --n) {
      const int64_t value = (random.OneIn(2) ? 1 : -1) *
                            static_cast<int64_t>(random.Uniform(uint64_t{1} << random.Uniform(50)));
      const uint64_t count = 1 + random.Uniform(5);
      decimals.Add(DecimalValue(std::to_string(value) + "e-5"), count);
      integers.Add(Value::Int64(value), count);
    }
    ASSERT_EQ(*decimals.Sum(), DecimalValue(integers.Sum()->ToString() + "e-5"));
  }
}

TEST(ColumnTotalsTest, ASumOfTooManyDigitsIsRefused) {
  ColumnTotals totals(Type::kDecimal);
  totals.Add(DecimalValue("1e900000000"), 1);
  totals.Add(DecimalValue("1e-900000000"), 1);
  EXPECT_EQ(totals.Sum().status().code(), StatusCode::kInvalidArgument);
  totals.Add(DecimalValue("-1e900000000"), 1);
  EXPECT_EQ(totals.Sum()->ToString(), "1e-900000000");
}

TEST(ColumnTotalsTest, OtherTypesHaveNoSum) {
  ColumnTotals texts(Type::kText);
  texts.Add(Value::Text("b"), 1);
  texts.Add(Value::Text("a"), 1);
  EXPECT_TRUE(texts.Sum()->is_null());
  EXPECT_EQ(texts.state().least, Value::Text("a"));
  EXPECT_EQ(texts.state().greatest, Value::Text("b"));
  ColumnTotals reals(Type::kDouble);
  reals.Add(*Value::Double(0.5), 3);
  EXPECT_EQ(*reals.Sum(), *Value::Double(1.5));
  reals.Add(*Value::Double(std::numeric_limits<double>::infinity()), 1);
  reals.Add(*Value::Double(-std::numeric_limits<double>::infinity()), 1);
  EXPECT_TRUE(reals.Sum()->is_null());
}

TEST(GroupTotalsTest, GroupsAddedInPartsEqualTheWhole) {
  TableSchema schema;
  schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                    {.name = "a", .type = Type::kText},
                    {.name = "n", .type = Type::kInt64}};
  schema.key = {0};
  GroupTotals whole(schema, {1}, {2}), part(schema, {1}, {2}), merged(schema, {1}, {2});
  Random random(2);
  for (int64_t i = 0; i < 500; ++i) {
    const Row row = {Value::Int64(i), Value::Text(std::string(1 + random.Uniform(4), 'x')),
                     random.OneIn(5) ? Value() : Value::Int64(i % 17)};
    whole.Add(row, 2);
    part.Add(row, 2);
    if (!random.OneIn(20)) continue;
    for (const auto& group : part.Take()) merged.Add(group.row, group.count, group.totals);
  }
  for (const auto& group : part.Take()) merged.Add(group.row, group.count, group.totals);
  EXPECT_EQ(part.size(), 0u);
  const auto expected = whole.Take(), got = merged.Take();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].row, expected[i].row);
    EXPECT_TRUE(got[i].row[0].is_null());
    EXPECT_EQ(got[i].count, expected[i].count);
    EXPECT_EQ(*got[i].totals[0].Sum(), *expected[i].totals[0].Sum());
    EXPECT_EQ(got[i].totals[0].state().least, expected[i].totals[0].state().least);
    EXPECT_EQ(got[i].totals[0].state().greatest, expected[i].totals[0].state().greatest);
  }
}

}  // namespace
}  // namespace tamis
