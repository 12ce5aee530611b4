// The encoding of cells: HBase's KeyValueCodec. A cell block follows the message of a call or
// answer.
//
//   cell block  = cell*
//   cell        = int32 size | int32 key size | int32 value size | key | value
//   key         = int16 row size | row | int8 family size | family | qualifier | int64 timestamp |
//   int8 type
//
// All numbers are big-endian. The qualifier has no length field: it fills the rest of the key.
// There are no tags.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace tamis::hbase {

enum class CellType : uint8_t {
  kPut = 4,
  kDelete = 8,                // one version
  kDeleteFamilyVersion = 10,  // one version of all columns of a family
  kDeleteColumn = 12,         // all versions up to one
  kDeleteFamily = 14,
};

// A timestamp that the server replaces with its own time.
inline constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();

// A cell whose parts are views of bytes that the caller owns.
struct Cell {
  std::string_view family;
  std::string_view qualifier;
  int64_t timestamp = kLatest;
  CellType type = CellType::kPut;
  std::string_view value;

  friend bool operator==(const Cell&, const Cell&) = default;
};

inline constexpr size_t kMaxRowBytes = 32767;
inline constexpr size_t kMaxFamilyBytes = 127;

// REQUIRES: row and family are no longer than the two limits above.
void AppendCell(std::string_view row, const Cell& cell, std::string* block);

struct RowAndCell {
  std::string_view row;
  Cell cell;
};
// Takes one cell off the front; returns nothing if the bytes do not start with a valid cell.
std::optional<RowAndCell> TakeCell(std::string_view* block);

}  // namespace tamis::hbase
