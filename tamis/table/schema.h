// TableSchema: the columns, key and indexes of a table. A value; every change makes a new version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/value.h"

namespace tamis {

struct Column {
  uint32_t id = 0;   // stable over changes, never reused
  std::string name;  // lower_snake
  Type type = Type::kText;
  bool nullable = true;  // key columns never are
};

struct IndexSpec {
  uint32_t id = 0;  // never reused, unique in the whole cluster
  std::string name;
  std::vector<uint32_t> columns;     // positions in TableSchema::columns
  double fpr = 0.001;                // false-positive rate wanted of one full filter layer
  uint64_t expected_values = 10000;  // distinct values a region: the capacity of one filter layer
  uint64_t seed = 0;                 // of the hashes of this index's values
};

struct TableSchema {
  uint32_t id = 0;  // never reused
  std::string name;
  uint64_t version = 1;
  std::vector<Column> columns;
  std::vector<uint32_t> key;  // positions in columns, in key order; at least one
  std::vector<IndexSpec> indexes;
  uint32_t next_column_id = 1;

  // Position of the column, or nothing.
  std::optional<uint32_t> FindColumn(std::string_view name) const;
  const IndexSpec* FindIndex(std::string_view name) const;
  const IndexSpec* FindIndex(uint32_t id) const;
  bool IsKey(uint32_t column) const;

  // Everything that must hold: names, references, no doubles, sizes.
  Status Validate() const;

  // CREATE-like text that a person reads in `table describe`.
  std::string ToString() const;
};

std::string SerializeSchema(const TableSchema& schema);
Result<TableSchema> ParseSchema(std::string_view bytes);

}  // namespace tamis
