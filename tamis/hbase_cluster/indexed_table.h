// IndexedTable: a table of HBase whose indexes Tamis keeps, as its description says
// (docs/HBASE.md#what-a-table-holds).
//
// The schema in it has an id that was drawn when the table was made; coordinators and servers name
// the table by a number that both compute from that id and the table's name, so that a copy under
// another name is another table.
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

// The maker of the HBase table, which owns its rows.
enum class TableOrigin { kCreated, kAttached };

struct IndexedTable {
  hbase::TableDescription description;
  TableSchema stored;  // as the description has it

  // "shop:Orders", with the namespace also where that is "default".
  std::string full_name() const;
  // The full name under which it was indexed; empty when a program wrote it that did not record it.
  std::string indexed_as() const;
  // kAttached where that is not recorded.
  TableOrigin origin() const;

  // The schema for coordinators: under the id that is used in messages.
  TableSchema schema() const;
};

// nullopt: Tamis keeps no indexes of it. kDataLoss when it cannot be read.
Result<std::optional<IndexedTable>> ReadIndexedTable(hbase::TableDescription description);

// The description with the schema and the settings that servers require of a table with a schema.
// The rest of the description stays; families that the schema names and that are missing are added.
hbase::TableDescription DescribeIndexed(hbase::TableDescription description,
                                        const TableSchema& stored);
// REQUIRES: it is described as indexed.
hbase::TableDescription WithOrigin(hbase::TableDescription description, TableOrigin origin);
// Whether Tamis left anything in it, a schema or not.
bool HasTraces(const hbase::TableDescription& description);
// A plain table again.
hbase::TableDescription DescribePlain(hbase::TableDescription description);

// A table of HBase has its rows in cells: columns for which none is named get one, named as they
// are, in one family. So does a column that is added to such a table.
TableSchema InCells(TableSchema schema);
Column InCell(const TableSchema& schema, Column column);

// "orders", "shop:orders"; the namespace "default" is left out.
std::string HBaseTableName(std::string_view name_space, std::string_view name);
// "shop:orders", "default:orders". `hbase_table` as HBaseTableName gives it.
std::string FullTableName(std::string_view hbase_table);
// Likewise.
uint32_t TableIdInMessages(std::string_view hbase_table, uint32_t stored_id);
// The id from the 32 hexadecimal digits of a region's name.
Result<RegionId> RegionIdOf(std::string_view encoded_name);

}  // namespace tamis
