// Rows made of index entries have the values of the rows, for all needed columns.
#include "tamis/rocks/entry_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tamis/rocks/index_entry.h"
#include "tamis/table/codec.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

class EntryRowsTest : public testing::Test {
 protected:
  struct Outcome {
    int made = 0;   // rows made of entries
    int wrong = 0;  // the number of these with another value in a needed column
  };

  EntryRowsTest() {
    schema_.name = "t";
    schema_.columns = {{.name = "k", .type = Type::kText, .nullable = false},
                       {.name = "a", .type = Type::kText},
                       {.name = "b", .type = Type::kDouble},
                       {.name = "c", .type = Type::kDecimal},
                       {.name = "d", .type = Type::kTimestamp},
                       {.name = "e", .type = Type::kBytes},
                       {.name = "f", .type = Type::kBool}};
    for (size_t i = 0; i < schema_.columns.size(); ++i) {
      schema_.columns[i].id = static_cast<uint32_t>(i + 1);
    }
    schema_.key = {0};
  }

  // Random rows, indexes and needed columns; some of the values are cut in entries.
  Outcome Run(const Faults& faults) {
    Outcome outcome;
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
      Row row = RandomRow(schema_, random);
      row[0] = Value::Text("k" + std::to_string(i));
      if (random.OneIn(4)) row[1] = Value::Text(std::string(1000 + random.Uniform(60), 'x'));
      IndexSpec index{.name = "i", .columns = {1}};
      for (uint32_t column = 2; column < schema_.columns.size(); ++column) {
        if (random.OneIn(2)) {
          index.columns.push_back(column);
        } else if (random.OneIn(4)) {
          index.include.push_back(column);
        }
      }
      std::vector<bool> needed(schema_.columns.size());
      for (size_t column = 0; column < needed.size(); ++column) needed[column] = random.OneIn(4);
      const auto rows = EntryRows::For(schema_, index, needed, faults);
      if (!rows.has_value()) continue;
      const auto entry = IndexEntry::Of(schema_, index, row);
      const auto made = rows->Read(entry->values, EncodeKey(schema_, row), entry->included);
      if (!made.has_value()) continue;
      ++outcome.made;
      bool wrong = false;
      for (size_t column = 0; column < needed.size(); ++column) {
        wrong |= needed[column] && (*made)[column] != row[column];
      }
      outcome.wrong += wrong ? 1 : 0;
    }
    return outcome;
  }

  TableSchema schema_;
};

TEST_F(EntryRowsTest, RowsHaveTheNeededColumns) {
  const Outcome outcome = Run({});
  EXPECT_GT(outcome.made, 300);
  EXPECT_EQ(outcome.wrong, 0);
}

TEST_F(EntryRowsTest, EntryWithoutNeededColumnWouldGiveAnotherRow) {
  EXPECT_GT(Run({.rows_from_any_entry = true}).wrong, 0);
}

TEST_F(EntryRowsTest, CutValueWouldGiveAnotherRow) {
  EXPECT_GT(Run({.cut_values_taken = true}).wrong, 0);
}

TEST_F(EntryRowsTest, DamagedEntryIsRead) {
  IndexSpec index{.name = "i", .columns = {1}};
  const Faults faults;
  const auto rows = EntryRows::For(schema_, index, std::vector<bool>(7), faults);
  ASSERT_TRUE(rows.has_value());
  Row row(7);
  row[0] = Value::Text("k");
  row[1] = Value::Text("value");
  const std::string values = IndexPrefixes(index, row).back();
  EXPECT_TRUE(rows->Read(values, EncodeKey(schema_, row), "").has_value());
  EXPECT_FALSE(rows->Read(values + "x", EncodeKey(schema_, row), "").has_value());
  EXPECT_FALSE(rows->Read(values.substr(0, 3), EncodeKey(schema_, row), "").has_value());
  EXPECT_FALSE(rows->Read(values, "no key", "").has_value());
  EXPECT_FALSE(rows->Read(values, EncodeKey(schema_, row), "\xff").has_value());
}

}  // namespace
}  // namespace tamis
