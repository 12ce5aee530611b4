// TableSchema: the columns, key and indexes of a table. A value; every change makes a new version
// (schema_change.h).
//
// A table that another program wrote describes its format: its rows are cells, each column names
// the cell that holds it and the encoding of the bytes, and the key has a format of its own. A
// value that does not decode reads as NULL; a row whose key does not parse is not part of the table
// (docs/TABLES.md).
//
// A computed column has an expression instead of a place: its value follows from another column of
// the row whenever the row is read (stored_row.h). It is never stored and never written; indexes,
// conditions, orders and results name it like any other column.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/cell_encoding.h"
#include "tamis/table/cell_map.h"
#include "tamis/table/expression.h"
#include "tamis/table/key_part.h"
#include "tamis/table/predicate.h"
#include "tamis/table/value.h"

namespace tamis {

// Where a column stands in a row of cells. Any bytes.
struct CellName {
  std::string family;
  std::string qualifier;

  friend auto operator<=>(const CellName&, const CellName&) = default;
};

// "d:amount", with \xNN for what is not printable.
std::string CellNameText(const CellName& name);

struct Column {
  uint32_t id = 0;        // stable over changes, never reused
  std::string name = {};  // lower_snake
  Type type = Type::kText;
  bool nullable = true;  // key columns never are
  // In a table of cells, for columns that are not in the key.
  CellName cell = {};
  CellEncoding encoding = CellEncoding::kNone;
  std::optional<Expression> expression = {};  // computed columns only

  bool is_computed() const { return expression.has_value(); }
  // Whether WithoutColumn (schema_change.h) has dropped the column. Nothing shows it from then on.
  bool is_dropped() const;
};

// The name that a dropped column has. The name is the only mark of it, so that software that does
// not know dropped columns keeps the mark when it changes the schema.
std::string DroppedColumnName(uint32_t id);
// Whether the name is that of a dropped column with any id.
bool IsDroppedColumnName(std::string_view name);

// Whether rows have an entry in an index while its first column is NULL. With kSkip the index is
// sparse: it finds no NULL, and a row that lacks the column costs it nothing.
enum class IndexNulls : uint8_t { kIndex = 0, kSkip = 1 };

struct IndexSpec {
  uint32_t id = 0;  // never reused within the table
  std::string name = {};
  std::vector<uint32_t> columns = {};  // positions in TableSchema::columns
  IndexNulls nulls = IndexNulls::kIndex;
  double fpr = 0.001;                // wanted false-positive rate of one full filter layer
  uint64_t expected_values = 10000;  // distinct values in a region: capacity of one filter layer
  uint64_t seed = 0;                 // the seed of the hashes of this index's values
  // Positions of columns whose values stand in the entry besides the indexed and the key columns,
  // so that a query of these columns need not read the row.
  std::vector<uint32_t> include = {};
  Predicate where =
      {};  // rows for which it is not true have no entry; by default all rows have one

  // Filters have a bit for each cell of this map besides, which excludes regions from ranges of the
  // first column; nullptr: they have none.
  std::shared_ptr<const CellMap> cell_map = nullptr;

  bool IsPartial() const { return where.kind != Predicate::Kind::kTrue; }
};

struct TableSchema {
  uint32_t id = 0;  // never reused
  std::string name;
  uint64_t version = 1;
  std::vector<Column> columns;
  std::vector<uint32_t> key;       // positions in columns, in key order; at least one
  std::vector<KeyPart> key_parts;  // one for each element of `key`; empty: all parts are ordered
  std::vector<IndexSpec> indexes;
  uint32_t next_column_id = 1;
  uint32_t next_index_id = 1;
  bool cells = false;  // true: rows are cells in another program's format; false: see codec.h
  // In a table of cells: written with every row, so that a row whose columns are all NULL exists.
  // Without a marker such a row cannot be stored.
  std::optional<CellName> marker;

  // The position of the column; nullopt when there is no such column, or it was dropped.
  std::optional<uint32_t> FindColumn(std::string_view name) const;
  const IndexSpec* FindIndex(std::string_view name) const;
  const IndexSpec* FindIndex(uint32_t id) const;
  bool IsKey(uint32_t column) const;
  bool HasComputedColumns() const;
  // Whether a column or the marker of the table is stored in the family.
  bool HasFamily(std::string_view family) const;

  // Checks all rules for a schema: names are valid and unique, positions refer to columns that
  // exist, nothing is listed twice, and sizes are within their bounds.
  Status Validate() const;

  // The text that `table describe` prints, similar to CREATE TABLE.
  std::string ToString() const;
};

using SchemaPtr = std::shared_ptr<const TableSchema>;

// Parses the text behind a column's type: "FAMILY:QUALIFIER[:ENCODING]".
Status ParseCell(std::string_view text, Column* column);

std::string SerializeSchema(const TableSchema& schema);
Result<TableSchema> ParseSchema(std::string_view bytes);

}  // namespace tamis
