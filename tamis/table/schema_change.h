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
// existing rows do not have it. A computed column takes the position of a dropped one with the same
// expression, so that the positions of a table are not used up by drops.
Result<TableSchema> WithColumn(TableSchema schema, Column column);
// Drops a computed column that no index uses; kFailedPrecondition for others. Requests and indexes
// name columns by position, and programs that have the table open go on using the positions that
// they know. So the column keeps its position, id and expression, and only gets another name
// (Column::is_dropped).
Result<TableSchema> WithoutColumn(TableSchema schema, std::string_view column);
// The schema without the positions of dropped columns: the table as it is shown. A dropped column
// stays if an index uses it, which software that does not know dropped columns may have made.
TableSchema WithoutDroppedColumns(const TableSchema& schema);
// The seed of the index is the one that the caller has set.
Result<TableSchema> WithIndex(TableSchema schema, IndexSpec index);
// nullptr: the index has no cells from here on.
Result<TableSchema> WithCellMap(TableSchema schema, std::string_view index,
                                std::shared_ptr<const CellMap> map);
Result<TableSchema> WithoutIndex(TableSchema schema, std::string_view index);

}  // namespace tamis
