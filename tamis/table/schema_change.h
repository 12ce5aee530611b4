// The changes of a schema, as pure functions that every cluster uses. Each returns the next version
// of the schema, with new ids where needed; an id is never reused within its table.
#pragma once

#include <memory>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/table/schema.h"

namespace tamis {

// The first version of a table, under its id in the cluster.
Result<TableSchema> NewTable(TableSchema wanted, uint32_t table_id);

// kAlreadyExists when the table has a column of that name. The new column must be nullable, since
// existing rows do not have it.
Result<TableSchema> WithColumn(TableSchema schema, Column column);
// The seed of the index is the one that the caller has set.
Result<TableSchema> WithIndex(TableSchema schema, IndexSpec index);
// nullptr: the index has no cells from here on.
Result<TableSchema> WithCellMap(TableSchema schema, std::string_view index,
                                std::shared_ptr<const CellMap> map);
Result<TableSchema> WithoutIndex(TableSchema schema, std::string_view index);

}  // namespace tamis
