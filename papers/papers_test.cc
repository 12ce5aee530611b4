// Formulas and measurements of all published figures agree; the same check fails on printed figures
// that are wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "papers/overflow.h"
#include "papers/published.h"
#include "papers/sections.h"

namespace tamis {
namespace {

constexpr uint64_t kSeed = 20261;  // not the page's

// A measured value is within five standard deviations of the figure, and 2 % for what differs from
// filter to filter. Intervals span 2 x 1.96 of them; about small figures that is too narrow, so the
// width that the figure itself would have counts.
bool Agrees(const Measurement& measured, double figure) {
  if (measured.exact()) return std::abs(measured.value - figure) <= 0.02 * std::abs(figure);
  const double of_measured = (measured.high - measured.low) / 3.92;
  const double scale = measured.value > 0 ? std::sqrt(figure / measured.value) : 1;
  const double sigma = of_measured * std::max(1.0, scale);
  return std::abs(measured.value - figure) <= 5 * sigma + 0.02 * figure;
}

// calls visit(table, row) for all rows.
void ForEachRow(const Document& document, auto&& visit) {
  for (const Section& section : document.sections) {
    for (const Section::Block& block : section.blocks) {
      if (const auto* table = std::get_if<Table>(&block)) {
        for (const Row& row : table->rows) visit(*table, row);
      }
    }
  }
}

std::string Named(const Table& table, const Row& row) {
  std::string name = table.title;
  for (const std::string& what : row.what) name += ", " + what;
  return name;
}

class PapersTest : public testing::Test {
 protected:
  static const Document& Published() {
    static const Document document = PublishedFigures(kSeed);
    return document;
  }
};

TEST_F(PapersTest, MeasurementsAgreeWithTheFormulas) {
  int compared = 0;
  ForEachRow(Published(), [&](const Table& table, const Row& row) {
    ASSERT_EQ(row.what.size(), table.what.size()) << Named(table, row);
    ASSERT_EQ(row.formulas.size(), table.formulas.size()) << Named(table, row);
    if (!row.measured || std::isnan(row.formulas.back()) || table.title == "Bits a key") return;
    EXPECT_TRUE(Agrees(*row.measured, row.formulas.back()))
        << Named(table, row) << ": " << row.measured->value << " of " << row.formulas.back();
    ++compared;
  });
  EXPECT_GT(compared, 80);
}

TEST_F(PapersTest, MeasurementsDoNotAgreeWithFiguresThatTheComparisonFindsWrong) {
  int wrong = 0;
  ForEachRow(Published(), [&](const Table& table, const Row& row) {
    const bool is_wrong = Verdict(table, row) == "wrong" || Verdict(table, row).starts_with("that");
    // Counters of 4 bits and more never overflowed, and that agrees with any small figure.
    if (!is_wrong || !row.measured || row.measured->value == 0) return;
    EXPECT_FALSE(Agrees(*row.measured, PrintedValue(row.printed))) << Named(table, row);
    ++wrong;
  });
  EXPECT_GE(wrong, 7);
}

TEST_F(PapersTest, TheWrongPrintsAreFound) {
  std::vector<std::string> verdicts;
  ForEachRow(Published(), [&](const Table& table, const Row& row) {
    if (table.title.starts_with("Tables 2 and 3") || row.what[0] == "14" ||
        row.printed == "2.22E-16")
      verdicts.push_back(Verdict(table, row));
  });
  EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), "that of \"e lost\""), 5);
  EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), "that of \"formula at k = 8\""), 1);
  EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), "that of \"2^-52\""), 1);
}

TEST_F(PapersTest, TheSameSeedGivesTheSamePageAndAnotherSeedAnother) {
  const std::vector<Section>& sections = Published().sections;
  const std::string cuckoo = ForTerminal(sections[sections.size() - 2]);
  EXPECT_EQ(ForTerminal(Cuckoo(kSeed)), cuckoo);
  EXPECT_NE(ForTerminal(Cuckoo(kSeed + 1)), cuckoo);
  const std::string level_ids = ForTerminal(sections.back());
  EXPECT_EQ(ForTerminal(LevelIds(kSeed)), level_ids);
  EXPECT_NE(ForTerminal(LevelIds(kSeed + 1)), level_ids);
}

}  // namespace
}  // namespace tamis
