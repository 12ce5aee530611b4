#include "papers/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tamis {
namespace {

using testing::HasSubstr;
using testing::Not;

Table TwoFormulas(std::string printed) {
  return {.title = "T",
          .what = {"j"},
          .formulas = {"first", "second"},
          .rows = {{{"2"}, std::move(printed), {0.0339, 0.1534}, Share(15, 100), ""}}};
}
std::string VerdictOf(const Table& table) { return Verdict(table, table.rows[0]); }

TEST(DocumentTest, PrintedFiguresAreRead) {
  EXPECT_DOUBLE_EQ(PrintedValue("1.80E-4"), 1.8e-4);
  EXPECT_DOUBLE_EQ(PrintedValue("0.014 %"), 1.4e-4);
  EXPECT_DOUBLE_EQ(PrintedValue("25,639"), 25639);
  EXPECT_TRUE(std::isnan(PrintedValue("about a millionth")));
  EXPECT_TRUE(std::isnan(PrintedValue("3 eggs")));
  EXPECT_TRUE(std::isnan(PrintedValue("")));
}

TEST(DocumentTest, ThePrintIsJudgedByTheLastFormula) {
  EXPECT_EQ(VerdictOf(TwoFormulas("0.1534")), "right");
  EXPECT_EQ(VerdictOf(TwoFormulas("0.0339")), "that of \"first\"");
  EXPECT_EQ(VerdictOf(TwoFormulas("0.2")), "wrong");
  EXPECT_EQ(VerdictOf(TwoFormulas("")), "");
}

TEST(DocumentTest, ATableLeavesOutColumnsThatAreEmpty) {
  const Document with{"D", {{"S", {TwoFormulas("0.2")}}}};
  EXPECT_THAT(Markdown(with), HasSubstr("| j | printed | print is | first | second | measured |"));
  const Document without{"D", {{"S", {TwoFormulas("")}}}};
  EXPECT_THAT(Markdown(without), Not(HasSubstr("printed")));
  EXPECT_THAT(Markdown(without), HasSubstr("| 2 | 0.0339 | 0.153 | 0.15 |"));
}

TEST(DocumentTest, NumbersHaveThreeDigitsAndShortExponents) {
  Table table = TwoFormulas("");
  table.rows[0].formulas = {7.14706e-7, 1.36e-16};
  EXPECT_THAT(ForTerminal({"S", {table}}), HasSubstr("7.15e-7  1.36e-16"));
  table.numbers = Table::Numbers::kCounts;
  table.rows[0].formulas = {1234567.4, 123};
  EXPECT_THAT(ForTerminal({"S", {table}}), HasSubstr("1,234,567     123"));
}

TEST(MeasurementTest, WilsonsIntervalHoldsForNoHit) {
  const Measurement none = Share(0, 1000000);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 3.84e-6, 1e-8);
  const Measurement half = Share(500, 1000);
  EXPECT_NEAR(half.low, 0.469, 1e-3);
  EXPECT_NEAR(half.high, 0.531, 1e-3);
}

}  // namespace
}  // namespace tamis
