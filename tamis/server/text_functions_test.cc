#include "tamis/server/text_functions.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <random>
#include <string>

#include "tamis/server/testing/sql_functions_test_case.h"

namespace tamis::server {
namespace {

class TextFunctionsTest : public SqlFunctionsTest {
 protected:
  TextFunctionsTest() : SqlFunctionsTest(RegisterTextFunctions) {}
};

TEST_F(TextFunctionsTest, ValuesAreThoseOfSqlite) {
  const uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto argument = [&]() -> std::string {
    const auto kind = random() % 16;
    if (kind == 0) return "NULL";
    if (kind == 1) return std::to_string(random() % 200);
    std::string value = kind == 2 ? "CAST('" : "'";
    for (uint64_t n = random() % 8; n > 0; --n) {
      value += std::array<const char*, 5>{"a", "b", " ", "\u00e9", "\u20ac"}[random() % 5];
    }
    return value + (kind == 2 ? "' AS BLOB)" : "'");
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string two = argument() + ", " + argument();
    for (const std::string& expression :
         {"instr(" + two + ")", "replace(" + two + ", " + argument() + ")", "trim(" + two + ")",
          "ltrim(" + two + ")", "rtrim(" + two + ")", "trim(" + argument() + ")"}) {
      ASSERT_EQ(ValueOf(ours_, expression), ValueOf(theirs_, expression))
          << expression << ", seed " << seed;
    }
  }
}

// SQLite's own functions take minutes for these.
TEST_F(TextFunctionsTest, LongArgumentsTakeLinearTime) {
  const std::string whole = "hex(zeroblob(4000000))";
  const std::string part = "hex(zeroblob(2000000)) || '1'";
  EXPECT_EQ(ValueOf(ours_, "instr(" + whole + ", " + part + ")"), "integer 0");
  EXPECT_EQ(ValueOf(ours_, "length(replace(" + whole + ", " + part + ", 'x'))"), "integer 8000000");
  EXPECT_EQ(ValueOf(ours_, "length(trim(" + whole + ", 'abcdefghijklmnopqrstuvwxyz0'))"),
            "integer 0");
  EXPECT_EQ(ValueOf(ours_, "trim(" + whole + ", " + whole + ")"),
            "trim: the characters to trim are too long");
}

TEST_F(TextFunctionsTest, ReplacementIsBounded) {
  sqlite3_limit(ours_, SQLITE_LIMIT_LENGTH, 1'000'000);
  EXPECT_EQ(ValueOf(ours_, "replace(hex(zeroblob(10000)), '0', hex(zeroblob(10000)))"),
            "string or blob too big");
}

}  // namespace
}  // namespace tamis::server
