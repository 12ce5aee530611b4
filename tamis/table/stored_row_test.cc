#include "tamis/table/stored_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/table/key_format.h"

namespace tamis {
namespace {

using testing::HasSubstr;

// key id (long); n int in d:n, f float in d:f, note text in m:note; marker d: (none).
TableSchema Cells(bool marker) {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                    {.id = 2, .name = "n", .type = Type::kInt64},
                    {.id = 3, .name = "f", .type = Type::kDouble},
                    {.id = 4, .name = "note", .type = Type::kText}};
  schema.next_column_id = 5;
  EXPECT_TRUE(ParseCell("d:n:int", &schema.columns[1]).ok());
  EXPECT_TRUE(ParseCell("d:f:float", &schema.columns[2]).ok());
  EXPECT_TRUE(ParseCell("m:note", &schema.columns[3]).ok());
  schema.key = {0};
  schema.key_parts = {*ParseKeyPart(Type::kInt64, "long")};
  schema.cells = true;
  if (marker) schema.marker = CellName{"d", ""};
  EXPECT_TRUE(schema.Validate().ok()) << schema.Validate();
  return schema;
}

const std::string kKey(8, '\0');

StoredRow Read(const TableSchema& schema, const std::vector<Cell>& cells) {
  auto row = ReadStoredRow(schema, kKey, EncodeCells(cells));
  EXPECT_TRUE(row.ok()) << row.status();
  return *row;
}

TEST(StoredRowTest, ValueThatDoesNotDecodeIsNullAndCounted) {
  const TableSchema schema = Cells(false);
  const StoredRow read = Read(schema, {{{"d", "f"}, "bad"},
                                       {{"d", "n"}, std::string("\0\0\0\7", 4)},
                                       {{"d", "other"}, "x"},
                                       {{"m", "note"}, "hi"}});
  EXPECT_EQ(read.state, StoredRow::State::kRow);
  EXPECT_EQ(read.row, (Row{Value::Int64(0), Value::Int64(7), Value(), Value::Text("hi")}));
  EXPECT_EQ(read.undecodable, 1u);
  EXPECT_EQ(ReadStoredRow(schema, "short", EncodeCells({{{"d", "f"}, ""}}))->state,
            StoredRow::State::kForeignKey);
  EXPECT_EQ(Read(schema, {}).state, StoredRow::State::kAbsent);
  EXPECT_EQ(Read(schema, {{{"strange", "n"}, ""}}).state, StoredRow::State::kAbsent);
  EXPECT_EQ(Read(schema, {{{"d", "strange"}, ""}}).state, StoredRow::State::kRow);
  EXPECT_EQ(ReadStoredRow(schema, kKey, "\x05").status().code(), StatusCode::kDataLoss);
}

TEST(StoredRowTest, AnUpdateKeepsWhatItDoesNotSet) {
  const TableSchema schema = Cells(false);
  const std::string before =
      EncodeCells({{{"d", "f"}, "bad"}, {{"d", "n"}, "also bad"}, {{"x", "y"}, "z"}});
  Row row(4);
  row[0] = Value::Int64(0);
  row[1] = Value::Int64(1);
  auto updated = WriteStoredRow(schema, row, before, std::vector<uint32_t>{1});
  ASSERT_TRUE(updated.ok());
  EXPECT_EQ(*DecodeCells(*updated),
            (std::vector<Cell>{
                {{"d", "f"}, "bad"}, {{"d", "n"}, std::string("\0\0\0\1", 4)}, {{"x", "y"}, "z"}}));
  // A put sets all columns, and keeps what is no column.
  auto put = WriteStoredRow(schema, row, before, std::nullopt);
  ASSERT_TRUE(put.ok());
  EXPECT_EQ(*DecodeCells(*put),
            (std::vector<Cell>{{{"d", "n"}, std::string("\0\0\0\1", 4)}, {{"x", "y"}, "z"}}));
  EXPECT_EQ(**DeleteStoredRow(schema, *put), EncodeCells({{{"x", "y"}, "z"}}));
  EXPECT_EQ(*DeleteStoredRow(schema, EncodeCells({{{"d", "q"}, ""}})), std::nullopt);
}

TEST(StoredRowTest, ARowOfNullsNeedsAMarker) {
  const Row nulls = {Value::Int64(0), Value(), Value(), Value()};
  const auto refused = WriteStoredRow(Cells(false), nulls, std::nullopt, std::nullopt);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("marker"));
  const auto marked = WriteStoredRow(Cells(true), nulls, std::nullopt, std::nullopt);
  ASSERT_TRUE(marked.ok());
  EXPECT_EQ(*DecodeCells(*marked), (std::vector<Cell>{{{"d", ""}, ""}}));
  EXPECT_EQ(ReadStoredRow(Cells(true), kKey, *marked)->state, StoredRow::State::kRow);
}

TEST(StoredRowTest, AValueWithoutAPlaceIsRefused) {
  const Row row = {Value::Int64(0), Value::Int64(int64_t{1} << 40), Value(), Value()};
  const auto refused = WriteStoredRow(Cells(true), row, std::nullopt, std::nullopt);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("column \"n\""));
}

}  // namespace
}  // namespace tamis
