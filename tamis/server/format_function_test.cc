#include "tamis/server/format_function.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "tamis/server/testing/sql_functions_test_case.h"

namespace tamis::server {
namespace {

class FormatFunctionTest : public SqlFunctionsTest {
 protected:
  FormatFunctionTest() : SqlFunctionsTest(RegisterFormatFunctions) {}
};

TEST_F(FormatFunctionTest, ValuesAreThoseOfSqlite) {
  const uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto one_of = [&](const auto& choices) { return choices[random() % choices.size()]; };
  const std::array<const char*, 12> parts = {"%", "-", "+", "!", "0", ",",
                                             "*", ".", "l", "7", "x", "\u00e9"};
  const std::array<const char*, 14> ends = {"d", "f", "g", "e", "c", "s", "q",
                                            "Q", "w", "x", "o", "%", "n", "y"};
  const std::array<const char*, 8> arguments = {"NULL",      "5",       "-3", "2.5",
                                                "'a\u20ac'", "x'00ff'", "''", "4294967299"};
  for (int i = 0; i < 20'000; ++i) {
    std::string expression = random() % 2 == 0 ? "format('" : "printf('";
    for (uint64_t n = random() % 4; n > 0; --n) {
      expression += '%';
      for (uint64_t m = random() % 4; m > 0; --m) expression += one_of(parts);
      expression += one_of(ends);
    }
    expression += '\'';
    for (uint64_t n = random() % 4; n > 0; --n) expression += std::string(", ") + one_of(arguments);
    expression += ')';
    const std::string theirs = ValueOf(theirs_, expression);
    ASSERT_EQ(ValueOf(ours_, expression), theirs) << expression << ", seed " << seed;
  }
  EXPECT_EQ(ValueOf(ours_, "printf()"), "null NULL");
  EXPECT_EQ(ValueOf(ours_, "format(NULL, 1)"), "null NULL");
}

// SQLite's own functions take minutes for the first two.
TEST_F(FormatFunctionTest, LongResultsAreRefusedAtOnce) {
  sqlite3_limit(ours_, SQLITE_LIMIT_LENGTH, 1'000'000);
  const std::string two_billions = "2000000000";
  const std::vector<std::string> too_long = {
      "printf('%.*c%.*c', " + two_billions + ", 'x', " + two_billions + ", 'x')",
      "format('%." + two_billions + "c', 'x')",
      "format('%." + two_billions + "f', 1.0)",
      "format('%*d', -" + two_billions + ", 1)",
      "format('%5.1000001d', 1)",
      "format('%600000d%600000d', 1, 1)"};
  for (const std::string& expression : too_long) {
    EXPECT_EQ(ValueOf(ours_, expression), "string or blob too big") << expression;
  }
  EXPECT_EQ(ValueOf(ours_, "format('%." + two_billions + "s', 'x')"), "text 'x'");
  EXPECT_EQ(ValueOf(ours_, "length(format('%.900000c', 'x'))"), "integer 900000");
}

}  // namespace
}  // namespace tamis::server
