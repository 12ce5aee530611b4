// HBaseSchemaChanges: creates, changes and drops the indexed tables of an HBase, through its
// master.
//
// A schema change ends when every region of the table has been reopened.
//
// Threads: safe. Calls block.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/server_reports.h"
#include "tamis/table/schema.h"

namespace tamis {

class HBaseSchemaChanges {
 public:
  // All arguments must outlive this object.
  HBaseSchemaChanges(HBaseCluster* cluster, hbase::Client* client, ServerReports* reports)
      : cluster_(cluster), client_(client), reports_(reports) {}

  // Stores each column in a cell; a column without a cell name gets one.
  Result<TableSchema> Create(TableSchema schema);
  Status Drop(const std::string& table, DropOptions options);
  Result<TableSchema> AddColumn(const std::string& table, const Column& column);
  Result<TableSchema> DropColumn(const std::string& table, const std::string& column);
  Result<TableSchema> CreateIndex(const std::string& table, IndexSpec index);
  Result<TableSchema> DropIndex(const std::string& table, const std::string& index);
  // Fails if a process does not load a jar that supports cells.
  Status CheckCells(const std::string& table, const std::string& index);
  // nullptr: the index has no cells from here on.
  Result<TableSchema> SetCellMap(const std::string& table, const std::string& index,
                                 std::shared_ptr<const CellMap> map);

 private:
  Status DropNow(const std::string& table, DropOptions options);
  Result<TableSchema> Change(const std::string& table,
                             const std::function<Result<TableSchema>(TableSchema)>& change);

  HBaseCluster* const cluster_;
  hbase::Client* const client_;
  ServerReports* const reports_;
};

}  // namespace tamis
