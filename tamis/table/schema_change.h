// The changes of a schema: pure functions, the same for every cluster. Each gives the next version,
// with the ids that it takes; ids are given within the table and never reused.
#pragma once

#include <string_view>

#include "tamis/base/status.h"
#include "tamis/table/schema.h"

namespace tamis {

// The first version of a table, under its id in the cluster.
Result<TableSchema> NewTable(TableSchema wanted, uint32_t table_id);

// kAlreadyExists when there is one of the name; a new column is nullable, rows without it exist.
Result<TableSchema> WithColumn(TableSchema schema, Column column);
// The index's seed is the caller's.
Result<TableSchema> WithIndex(TableSchema schema, IndexSpec index);
Result<TableSchema> WithoutIndex(TableSchema schema, std::string_view index);

}  // namespace tamis
