// Converts the stored bytes of a row to values and back. The bytes are our own encoding of a row
// (codec.h), or cells as another program wrote them (docs/FORMATS.md#cells).
//
// A cell that does not decode reads as NULL and is counted; it keeps its bytes until its column is
// set. Cells that no column names are kept by writes. A row of cells exists while any cell of the
// table's families does: deleting it takes all of those, mapped to a column or not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

struct Cell {
  CellName name;
  std::string value;

  friend bool operator==(const Cell&, const Cell&) = default;
};

// REQUIRES: ascending names, each once.
std::string EncodeCells(const std::vector<Cell>& cells);
Result<std::vector<Cell>> DecodeCells(std::string_view bytes);

struct StoredRow {
  enum class State {
    kRow,
    kAbsent,      // no cell of the table's families stands there
    kForeignKey,  // the key does not parse: not a row of the table
  };
  State state = State::kAbsent;
  Row row;                   // the row of kRow
  uint64_t undecodable = 0;  // cells that stand there and read as NULL
};

// Sets the computed columns of a row whose other columns are set.
void SetComputedColumns(const TableSchema& schema, Row* row);

// The row, its computed columns included. kDataLoss when the bytes themselves are damaged.
Result<StoredRow> ReadStoredRow(const TableSchema& schema, std::string_view key,
                                std::string_view stored);

// The bytes for the row. `before` is what stands there now; `columns` are the positions that are
// set, nullopt = all. Computed columns are left out. kInvalidArgument: a value has no place in its
// cell, or no cell would be left.
Result<std::string> WriteStoredRow(const TableSchema& schema, const Row& row,
                                   const std::optional<std::string>& before,
                                   const std::optional<std::vector<uint32_t>>& columns);

// The stored value after the row is deleted; nullopt = nothing is stored.
Result<std::optional<std::string>> DeleteStoredRow(const TableSchema& schema,
                                                   const std::string& before);

}  // namespace tamis
