#include "tamis/sql/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

TableSchema SchemaOf(Type type) {
  TableSchema schema;
  schema.columns = {{.id = 1, .name = "c", .type = type}};
  return schema;
}

bool Holds(int order, Op op) {
  switch (op) {
    case Op::kEq:
      return order == 0;
    case Op::kNe:
      return order != 0;
    case Op::kLt:
      return order < 0;
    case Op::kLe:
      return order <= 0;
    case Op::kGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

std::string Folded(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
  return text;
}

TEST(NoCaseRangeTest, HoldsForEveryTextThatTheCollationAccepts) {
  const std::string_view alphabet = "09@AZ[_`az{~\x7f\xc3\xa9";
  Random random(1);
  const auto text = [&] {
    std::string out;
    for (uint64_t n = random.Uniform(4); n > 0; --n)
      out += alphabet[random.Uniform(alphabet.size())];
    return out;
  };
  int excluded = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string value = text();
    const std::string bound = text();
    const Op op = std::vector{Op::kLt, Op::kLe, Op::kGt, Op::kGe}[random.Uniform(4)];
    const auto range = NoCaseRange(0, op, bound);
    if (!range) continue;
    const bool matches = range->Matches({Value::Text(value)});
    if (Holds(Folded(value).compare(Folded(bound)), op)) {
      EXPECT_TRUE(matches) << value << " " << static_cast<int>(op) << " " << bound;
    } else {
      excluded += !matches;
    }
  }
  EXPECT_GT(excluded, 10'000);
}

TEST(NumberOfTextTest, ReadsWhatSqliteReadsAsANumber) {
  for (const auto& [text, number] : std::vector<std::pair<const char*, Value>>{
           {"12", Value::Int64(12)},
           {" +12\n", Value::Int64(12)},
           {"-.5", *Value::Double(-0.5)},
           {"1.", *Value::Double(1)},
           {"1e3", *Value::Double(1000)},
           {"9223372036854775808", *Value::Double(9223372036854775808.0)},
           {"1e400", *Value::Double(HUGE_VAL)},
           {"-1e-400", *Value::Double(0)}}) {
    EXPECT_EQ(NumberOfText(text), number) << text;
  }
  for (const char* text : {"", " ", "+", "+-1", "0x1", "1e", "inf", "nan", "1 2", "12abc", "."}) {
    EXPECT_EQ(NumberOfText(text), std::nullopt) << text;
  }
}

TEST(CompareSqlTest, ATimeComparesWithAnyTextAsTheTextThatItIsShownAs) {
  const TableSchema schema = SchemaOf(Type::kTimestamp);
  const std::vector<const char*> times = {"0000-01-01 00:00:00", "1969-12-31 23:59:59.999999",
                                          "2026-01-02 03:04:05", "2026-01-02 03:04:05.25",
                                          "2026-01-12 00:00:00", "9999-12-31 23:59:59.999999"};
  const std::vector<const char*> texts = {"",           "2026",       "2026-01-0",
                                          "2026-01-",   "2026-1-2",   "2026-01-02T03:04:05Z",
                                          "2026-01-02", "9999-12-31", "9999-12-31 23:59:59.9999991",
                                          "soon",       "~",          "2026-01-02 03:04:05.250"};
  for (const char* time : times) {
    const Row row = {*Value::Parse(Type::kTimestamp, time)};
    for (const auto& others : {times, texts}) {
      for (const char* text : others) {
        for (const Op op : {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe}) {
          EXPECT_EQ(CompareSql(schema, 0, op, Value::Text(text)).Matches(row),
                    Holds(FormatSqlTimestamp(row[0].int64()).compare(text), op))
              << time << " " << static_cast<int>(op) << " " << text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tamis
