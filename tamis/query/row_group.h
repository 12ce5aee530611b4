// RowGroup: a row of a search, or several that have the same wanted columns.
//
// Threads: a value.
#pragma once

#include <cstdint>

#include <vector>

#include "tamis/table/column_totals.h"
#include "tamis/table/row.h"

namespace tamis {

struct RowGroup {
  Row row;
  uint64_t count = 1;
  bool has_key = true;  // false: the key columns are NULL
  // One for each of SearchOptions::totals, which are NULL in the row. Empty: the row has their
  // values.
  std::vector<ColumnTotals> totals = {};
};

}  // namespace tamis
