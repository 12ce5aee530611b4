#include "tamis/table/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tamis/table/decimal.h"
#include "tamis/table/testing/random_values.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

TEST(ValueTest, TypeNamesReadBack) {
  for (const Type type : kAllTypes) EXPECT_EQ(*ParseType(TypeName(type)), type);
  EXPECT_EQ(*ParseType("int"), Type::kInt64);
  EXPECT_EQ(*ParseType("String"), Type::kText);
  EXPECT_EQ(*ParseType("float"), Type::kDouble);
  EXPECT_EQ(ParseType("uuid").status().code(), StatusCode::kInvalidArgument);
}

TEST(ValueTest, TextsReadBack) {
  Random random(1);
  for (const Type type : kAllTypes) {
    for (int i = 0; i < 5000; ++i) {
      const Value value = RandomValue(type, random);
      const auto back = Value::Parse(type, value.ToString());
      ASSERT_TRUE(back.ok()) << value.ToString() << ": " << back.status();
      ASSERT_EQ(*back, value) << value.ToString();
    }
  }
}

TEST(ValueTest, EqualValuesAreOneValue) {
  EXPECT_EQ(*Value::Double(-0.0), *Value::Double(0.0));
  EXPECT_FALSE(std::signbit(Value::Double(-0.0)->dbl()));
  EXPECT_EQ(Value::Decimal("1.00")->str(), "1");
  EXPECT_EQ(Value::Decimal("+0010e-1")->str(), "1");
  EXPECT_EQ(Value::Decimal("-0.0")->str(), "0");
  EXPECT_EQ(Value::Decimal("-12.50e3")->str(), "-12500");
  EXPECT_EQ(Value::Decimal(".5")->str(), "0.5");
  EXPECT_EQ(Value::Decimal("125e298")->str(), "1.25e300");
}

TEST(ValueTest, NullComesFirst) {
  EXPECT_LT(Value(), Value::Text(""));
  EXPECT_LT(Value(), Value::Int64(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(Value(), Value());
  EXPECT_EQ(Value().ToString(), "NULL");
}

TEST(ValueTest, DecimalsOrderByNumber) {
  const char* sorted[] = {"-1e300", "-12.51", "-12.5", "-1",   "-0.1",
                          "-0.01",  "0",      "0.01",  "0.1",  "0.10000000000000000000001",
                          "1",      "9.9",    "10",    "1e300"};
  for (size_t i = 0; i + 1 < std::size(sorted); ++i) {
    EXPECT_LT(*Value::Decimal(sorted[i]), *Value::Decimal(sorted[i + 1])) << sorted[i];
  }
}

TEST(ValueTest, RefusesWhatHasNoPlace) {
  EXPECT_FALSE(Value::Double(std::numeric_limits<double>::quiet_NaN()).ok());
  for (const char* text :
       {"", ".", "-", "1e", "1e+-2", "1e9999999999", "1e2000000000", "0x10", "1.2.3", " 1"}) {
    EXPECT_FALSE(Value::Decimal(text).ok()) << text;
  }
  for (const char* text : {"", "5.0", "9223372036854775808", "1 ", "+-1"}) {
    EXPECT_FALSE(Value::Parse(Type::kInt64, text).ok()) << text;
  }
  for (const char* text : {"nan", "1e999", "", "1,5"}) {
    EXPECT_FALSE(Value::Parse(Type::kDouble, text).ok()) << text;
  }
  EXPECT_FALSE(Value::Parse(Type::kBool, "2").ok());
  EXPECT_FALSE(Value::Parse(Type::kBytes, "abc").ok());
  EXPECT_FALSE(Value::Parse(Type::kBytes, "0xabc").ok());
}

TEST(ValueTest, TimesReadAsPeopleWriteThem) {
  const int64_t time = 1767323045LL * 1'000'000;
  EXPECT_EQ(*ParseTimestamp("2026-01-02T03:04:05Z"), time);
  EXPECT_EQ(*ParseTimestamp("2026-01-02 03:04:05"), time);
  EXPECT_EQ(*ParseTimestamp("2026-01-02T04:04:05+01:00"), time);
  EXPECT_EQ(*ParseTimestamp("2026-01-02T03:04:05.250000000"), time + 250'000);
  for (const char* finer : {"2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.1234567"}) {
    EXPECT_THAT(ParseTimestamp(finer).status().message(), testing::HasSubstr("microsecond"));
  }
  EXPECT_EQ(*ParseTimestamp("2026-01-02 03:04"), time - 5'000'000);
  EXPECT_EQ(*ParseTimestamp("1970-01-01"), 0);
  EXPECT_EQ(*ParseTimestamp("1969-12-31T23:59:59.999999Z"), -1);
  EXPECT_EQ(FormatTimestamp(time + 250'000), "2026-01-02T03:04:05.25Z");
  EXPECT_EQ(FormatSqlTimestamp(time), "2026-01-02 03:04:05");
  EXPECT_EQ(FormatTimestamp(*ParseTimestamp("2024-02-29")), "2024-02-29T00:00:00Z");
  for (const char* text : {"", "2026", "2026-13-01", "2025-02-29", "2026-01-02T24:00:00",
                           "2026-01-02T03:04:05.1234567", "2026-01-02x", "2026-01-02T03:04:05+1"}) {
    EXPECT_FALSE(ParseTimestamp(text).ok()) << text;
  }
  for (const int64_t edge :
       {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(*ParseTimestamp(FormatTimestamp(edge)), edge) << FormatTimestamp(edge);
  }
}

TEST(DecimalTest, DoublesConvertExactly) {
  EXPECT_EQ(Decimal::FromDouble(0.5).ToString(), "0.5");
  EXPECT_EQ(Decimal::FromDouble(0.1).ToString(),
            "0.1000000000000000055511151231257827021181583404541015625");
  EXPECT_EQ(Decimal::FromDouble(-3).ToString(), "-3");
  EXPECT_EQ(Decimal::FromDouble(0).ToString(), "0");
}

}  // namespace
}  // namespace tamis
