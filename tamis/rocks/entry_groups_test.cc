#include "tamis/rocks/entry_groups.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/table/codec.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

TEST(EntryGroupsTest, EntriesSplitIntoDecidingValuesAndRowKey) {
  Random random(1);
  const TableSchema schema = SchemaOfAllTypes();
  for (const IndexSpec& index : schema.indexes) {
    for (size_t columns = 0; columns <= index.columns.size(); ++columns) {
      std::vector<bool> needed(schema.columns.size(), false);
      if (columns > 0) needed[index.columns[columns - 1]] = true;
      auto groups = EntryGroups::For(schema, index, needed);
      ASSERT_TRUE(groups.has_value());
      for (int i = 0; i < 200; ++i) {
        const Row row = RandomRow(schema, random);
        const std::vector<std::string> prefixes = IndexPrefixes(index, row);
        const std::string deciding = columns == 0 ? "" : prefixes[columns - 1];
        const std::string key = EncodeKey(schema, row), entry = prefixes.back() + key;
        const auto split = groups->SplitEntry(entry);
        ASSERT_TRUE(split.ok()) << split.status();
        ASSERT_EQ(split->values, deciding);
        ASSERT_EQ(split->row_key, key);
        ASSERT_EQ(*groups->Deciding(prefixes.back()), deciding);
        if (!groups->Find(deciding, 0).has_value()) groups->Remember(deciding, nullptr, 0);
      }
    }
  }
}

TEST(EntryGroupsTest, ColumnThatIsNotInTheIndexDecidesByTheRow) {
  const TableSchema schema = SchemaOfAllTypes();
  const IndexSpec& index = schema.indexes[0];
  std::vector<bool> needed(schema.columns.size(), true);
  EXPECT_FALSE(EntryGroups::For(schema, index, needed).has_value());
}

// Groups that were taken out of the page are not counted in again.
TEST(EntryGroupsTest, GroupsOfAnEarlierGenerationAreForgotten) {
  const TableSchema schema = SchemaOfAllTypes();
  const IndexSpec& index = schema.indexes[0];
  std::vector<bool> needed(schema.columns.size(), false);
  needed[index.columns[0]] = true;
  auto groups = EntryGroups::For(schema, index, needed);
  RowGroups page;
  RowGroups::Group* group = page.Find("row");
  ++group->count;
  groups->Remember("a", group, page.generation());
  EXPECT_EQ(groups->Find("a", page.generation()), group);
  EXPECT_EQ(groups->Find("b", page.generation()), std::nullopt);
  EXPECT_EQ(page.Take().size(), 1u);
  EXPECT_EQ(groups->Find("a", page.generation()), std::nullopt);
  RowGroups::Group* again = page.Find("row");
  EXPECT_EQ(again->count, 0u);
  groups->Remember("a", again, page.generation());
  EXPECT_EQ(groups->Find("a", page.generation()), again);
}

}  // namespace
}  // namespace tamis
