#include "tamis/hbase_cluster/indexed_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis {
namespace {

using testing::Contains;
using testing::Pair;

TableSchema Orders() {
  TableSchema schema;
  schema.name = "orders";
  schema.id = 7;
  schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                    {.id = 2, .name = "customer", .type = Type::kText},
                    {.id = 3, .name = "paid", .type = Type::kBool}};
  schema.key = {0};
  schema.next_column_id = 4;
  return schema;
}

TEST(IndexedTableTest, ColumnsWithoutACellGetOneOfTheirName) {
  const TableSchema schema = InCells(Orders());
  EXPECT_EQ(schema.Validate(), Status());
  EXPECT_TRUE(schema.cells);
  EXPECT_EQ(schema.columns[0].encoding, CellEncoding::kNone);  // part of the key
  EXPECT_EQ(schema.columns[1].cell, (CellName{"d", "customer"}));
  EXPECT_EQ(schema.columns[2].encoding, DefaultEncoding(Type::kBool));
  EXPECT_EQ(schema.marker, (CellName{"d", ""}));
  EXPECT_EQ(InCells(schema).columns[1].cell, schema.columns[1].cell);
  const Column added = InCell(schema, {.name = "note", .type = Type::kText});
  EXPECT_EQ(added.cell, (CellName{"d", "note"}));
}

TEST(IndexedTableTest, DescriptionSurvivesARoundTrip) {
  const TableSchema schema = InCells(Orders());
  const auto table = ReadIndexedTable(DescribeIndexed({.name = "shop:orders"}, schema));
  ASSERT_TRUE(table.ok() && table->has_value()) << table.status();
  EXPECT_EQ((*table)->stored.id, 7u);
  EXPECT_EQ((*table)->schema().id, TableIdInMessages("shop:orders", 7));
  EXPECT_EQ((*table)->stored.columns.size(), 3u);
  EXPECT_EQ((*table)->description.families.size(), 2u);

  const auto plain = ReadIndexedTable(DescribePlain((*table)->description));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(plain->has_value());
  const auto damaged =
      ReadIndexedTable({.name = "t", .attributes = {{"tamis.schema", "\xff\xff no schema"}}});
  EXPECT_EQ(damaged.status().code(), StatusCode::kDataLoss);
  EXPECT_NE(damaged.status().message().find("\"t\""), std::string::npos) << damaged.status();
}

TEST(IndexedTableTest, KeepsSettingsOfOtherPrograms) {
  const hbase::TableDescription theirs{
      .name = "t",
      .attributes = {{"coprocessor$1", "|org.example.Other|1000|"}, {"owner", "them"}},
      .families = {{.name = "d", .attributes = {{"VERSIONS", "3"}}}}};
  const hbase::TableDescription ours = DescribeIndexed(theirs, InCells(Orders()));
  EXPECT_THAT(ours.attributes, Contains(Pair("coprocessor$1", "|org.example.Other|1000|")));
  EXPECT_THAT(ours.attributes,
              Contains(Pair("coprocessor$2", "|tamis.hbase.IndexObserver|2147483647|")));
  EXPECT_THAT(ours.families[0].attributes, Contains(Pair("VERSIONS", "3")));
  // A second call changes nothing but the schema.
  EXPECT_EQ(DescribeIndexed(ours, InCells(Orders())).attributes, ours.attributes);

  const hbase::TableDescription plain = DescribePlain(ours);
  EXPECT_EQ(plain.attributes, theirs.attributes);
  ASSERT_EQ(plain.families.size(), 1u);
  EXPECT_EQ(plain.families[0].name, "d");
}

TEST(IndexedTableTest, KeepsTheOriginAndDefaultsToAttached) {
  const TableSchema schema = InCells(Orders());
  IndexedTable table{.description = DescribeIndexed({.name = "t"}, schema), .stored = schema};
  EXPECT_EQ(table.origin(), TableOrigin::kAttached);
  table.description = WithOrigin(table.description, TableOrigin::kCreated);
  table.description = DescribeIndexed(table.description, schema);
  EXPECT_EQ(table.origin(), TableOrigin::kCreated);
  EXPECT_EQ(table.indexed_as(), "default:t");
}

TEST(IndexedTableTest, ForeignFamilyIsNotATrace) {
  const hbase::TableDescription theirs{.name = "t", .families = {{.name = "tamis"}}};
  EXPECT_FALSE(HasTraces(theirs));
  EXPECT_EQ(DescribePlain(theirs).families.size(), 1u);
  hbase::TableDescription left = DescribeIndexed(theirs, InCells(Orders()));
  left.attributes.erase("tamis.schema");
  EXPECT_TRUE(HasTraces(left));
  EXPECT_FALSE(HasTraces(DescribePlain(left)));
}

TEST(IndexedTableTest, NumbersInMessagesMatchTheServers) {
  // A table's number depends on its full name and on its random id.
  EXPECT_EQ(TableIdInMessages("t", 7), TableIdInMessages("default:t", 7));
  EXPECT_NE(TableIdInMessages("t", 7), TableIdInMessages("t", 8));
  EXPECT_NE(TableIdInMessages("t", 7), TableIdInMessages("n:t", 7));
  // A region's number is the first 63 bits of its encoded name.
  EXPECT_EQ(*RegionIdOf("ffffffffffffffff0000000000000000"), RegionId((uint64_t{1} << 63) - 1));
  EXPECT_EQ(*RegionIdOf("0000000000000001ffffffffffffffff"), RegionId(1));
  EXPECT_EQ(*RegionIdOf("00000000000000040000000000000000"), RegionId(2));
  for (const char* name : {"", "12", "000000000000000x0000000000000000"}) {
    EXPECT_EQ(RegionIdOf(name).status().code(), StatusCode::kDataLoss) << name;
  }
}

}  // namespace
}  // namespace tamis
