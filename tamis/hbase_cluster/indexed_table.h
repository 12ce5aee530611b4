// IndexedTable: an HBase table that Tamis indexes, as its description defines it
// (docs/HBASE.md#contents-of-a-table).
//
// The schema has an id that was drawn at random when the table was created. Coordinators and
// servers compute the table's number in messages from that id and the table's name, so a copy under
// another name counts as another table.
//
// HBase copies attributes with a table: clone_snapshot, clone_table_schema and the restore of a
// backup under another name all give the new table the schema of the old one. So the description
// also records the HBase name under which the table was indexed. A table whose record is another
// name than its own is a copy; table_names.h says what that means for the names of a store.
//
// Threads: values, pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/cluster/region_id.h"
#include "tamis/hbase/table_schema.h"
#include "tamis/table/schema.h"

namespace tamis {

// Whether Tamis created the HBase table and owns its rows, or the table existed before.
enum class TableOrigin { kCreated, kAttached };

struct IndexedTable {
  hbase::TableDescription description;
  TableSchema stored;  // the schema in the description

  // "shop:Orders"; the namespace "default" is included.
  std::string full_name() const;
  // The full name under which the table was indexed; empty if the program that indexed it did not
  // record the name.
  std::string indexed_as() const;
  // kAttached if the description does not record it.
  TableOrigin origin() const;

  // The schema with the id that is used in messages.
  TableSchema schema() const;
};

// A random seed that is not 0.
uint64_t NewIndexSeed();
// The first version of the schema, with a random id, and random seeds where none are given.
Result<TableSchema> FirstVersion(TableSchema wanted);

// Returns nullopt if Tamis does not index the table, kDataLoss if the schema cannot be read.
Result<std::optional<IndexedTable>> ReadIndexedTable(hbase::TableDescription description);

// Adds the schema and the settings that the servers require to the description. Other settings
// stay; missing families that the schema names are added.
hbase::TableDescription DescribeIndexed(hbase::TableDescription description,
                                        const TableSchema& stored);
// REQUIRES: the description contains a schema.
hbase::TableDescription WithOrigin(hbase::TableDescription description, TableOrigin origin);
// Whether the description contains any attribute of Tamis, with or without a schema.
bool HasTraces(const hbase::TableDescription& description);
// Removes everything that Tamis added.
hbase::TableDescription DescribePlain(hbase::TableDescription description);

// Adds cell names to columns without one, since an HBase table stores its rows in cells: the cell
// has the column's name, and all are in one family. InCell does the same for a column that is added
// later.
TableSchema InCells(TableSchema schema);
Column InCell(const TableSchema& schema, Column column);

// Returns "orders" or "shop:orders"; the namespace "default" is left out.
std::string HBaseTableName(std::string_view name_space, std::string_view name);
// Returns "shop:orders" or "default:orders". `hbase_table` has the format of HBaseTableName.
std::string FullTableName(std::string_view hbase_table);
// `hbase_table` has the format of HBaseTableName.
uint32_t TableIdInMessages(std::string_view hbase_table, uint32_t stored_id);
// Parses the 32 hexadecimal digits in a region's name.
Result<RegionId> RegionIdOf(std::string_view encoded_name);

}  // namespace tamis
