#include "tamis/hbase/cell_block.h"

#include <gtest/gtest.h>

#include "tamis/base/coding.h"
#include "tamis/hbase/operations.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

std::string Block() {
  std::string block;
  AppendCell("row", {.family = "f", .qualifier = "q", .timestamp = 258, .value = "value"}, &block);
  return block;
}

TEST(CellBlockTest, GoldenBytes) {
  EXPECT_EQ(Block(), std::string("\0\0\0\x1e"          // size
                                 "\0\0\0\x11\0\0\0\5"  // sizes of key and value
                                 "\0\3row\1f"
                                 "q"
                                 "\0\0\0\0\0\0\1\2\4"
                                 "value",
                                 34));
}

TEST(CellBlockTest, WrittenCellsAreReadBack) {
  std::string block = Block();
  const Cell second{.family = "",
                    .qualifier = std::string_view("\0", 1),
                    .timestamp = kLatest,
                    .type = CellType::kDeleteFamily,
                    .value = ""};
  AppendCell("", second, &block);
  std::string_view rest = block;
  const auto first = TakeCell(&rest);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->row, "row");
  EXPECT_EQ(first->cell, (Cell{.family = "f",
                               .qualifier = "q",
                               .timestamp = 258,
                               .type = CellType::kPut,
                               .value = "value"}));
  const auto other = TakeCell(&rest);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->cell, second);
  EXPECT_TRUE(rest.empty());
  EXPECT_FALSE(TakeCell(&rest));
}

TEST(CellBlockTest, DamagedBytesAreRejected) {
  const std::string block = Block();
  for (size_t size = 0; size < block.size(); ++size) {
    std::string_view rest = std::string_view(block).substr(0, size);
    EXPECT_FALSE(TakeCell(&rest)) << size;
  }
  for (const size_t at : {3u, 7u, 11u, 13u, 17u}) {  // the size fields
    std::string damaged = block;
    damaged[at] = static_cast<char>(0xff);
    std::string_view rest = damaged;
    EXPECT_FALSE(TakeCell(&rest)) << at;
  }
}

TEST(CellBlockTest, NamesBeyondHBaseLimitsAreRejected) {
  const auto block = [](size_t row, size_t family) {
    std::string key;
    key += static_cast<char>(row >> 8);
    key += static_cast<char>(row);
    key += std::string(row, 'r');
    key += static_cast<char>(family);
    key += std::string(family, 'f') + std::string(9, '\4');
    std::string bytes;
    PutBig32(&bytes, static_cast<uint32_t>(8 + key.size()));
    PutBig32(&bytes, static_cast<uint32_t>(key.size()));
    PutBig32(&bytes, 0);
    return bytes + key;
  };
  const auto is_cell = [&](size_t row, size_t family) {
    const std::string bytes = block(row, family);
    std::string_view rest = bytes;
    return TakeCell(&rest).has_value();
  };
  EXPECT_TRUE(is_cell(kMaxRowBytes, kMaxFamilyBytes));
  EXPECT_FALSE(is_cell(kMaxRowBytes + 1, 1));
  EXPECT_FALSE(is_cell(1, kMaxFamilyBytes + 1));
}

TEST(RowTest, CellCountsBeyondTheBytesAreRejected) {
  const auto bytes = std::make_shared<const std::string>(Block());
  std::string_view cells = *bytes;
  EXPECT_EQ(TakeRow(1u << 31, &cells, bytes).status().code(), StatusCode::kDataLoss);
  pb::Result result;
  result.set_associated_cell_count(-5);
  EXPECT_TRUE(TakeRow(result, &cells, bytes)->empty());
  result.set_associated_cell_count(1);
  EXPECT_EQ(TakeRow(result, &cells, bytes)->Find("f", "q"), "value");
  EXPECT_EQ(TakeRow(result, &cells, bytes).status().code(), StatusCode::kDataLoss);
}

TEST(RowTest, CellsOfTwoRowsAreRejectedAsOneRow) {
  std::string block = Block();
  AppendCell("other", {.family = "f"}, &block);
  const auto bytes = std::make_shared<const std::string>(block);
  std::string_view cells = *bytes;
  EXPECT_EQ(TakeRow(2, &cells, bytes).status().code(), StatusCode::kDataLoss);
}

TEST(RowTest, ReadsCellsFromTheMessage) {
  pb::Result result;
  pb::Cell& cell = *result.add_cell();
  cell.set_row("r");
  cell.set_family("f");
  cell.set_qualifier("q");
  cell.set_value("v");
  std::string_view nothing;
  const auto row = TakeRow(result, &nothing, nullptr);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->key(), "r");
  EXPECT_EQ(row->Find("f", "q"), "v");
  cell.set_family(std::string(200, 'f'));
  EXPECT_EQ(TakeRow(result, &nothing, nullptr).status().code(), StatusCode::kDataLoss);
}

TEST(MutationTest, InvalidMutationsAreRefused) {
  EXPECT_TRUE(Mutation::Put("r").Set("f", "", "").Check().ok());
  EXPECT_TRUE(Mutation::Delete("r").Check().ok());
  EXPECT_FALSE(Mutation::Put("r").Check().ok());
  EXPECT_FALSE(Mutation::Put("").Set("f", "q", "v").Check().ok());
  EXPECT_FALSE(Mutation::Put(std::string(kMaxRowBytes + 1, 'r')).Set("f", "q", "v").Check().ok());
  EXPECT_FALSE(Mutation::Put("r").Set("", "q", "v").Check().ok());
  EXPECT_FALSE(
      Mutation::Put("r").Set(std::string(kMaxFamilyBytes + 1, 'f'), "q", "v").Check().ok());
  EXPECT_FALSE(Mutation::Put("r").DeleteColumn("f", "q").Check().ok());
  EXPECT_FALSE(Mutation::Delete("r").Set("f", "q", "v").Check().ok());
}

}  // namespace
}  // namespace tamis::hbase
