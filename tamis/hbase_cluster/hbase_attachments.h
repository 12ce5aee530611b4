// HBaseAttachments: attaches HBase tables that other programs created, and detaches them again.
//
// Threads: safe. Calls block.
#pragma once

#include <string>
#include <vector>

#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/server_reports.h"
#include "tamis/table/schema.h"

namespace tamis {

class HBaseAttachments {
 public:
  // All arguments must outlive this object.
  HBaseAttachments(HBaseCluster* cluster, hbase::Client* client, ServerReports* reports)
      : cluster_(cluster), client_(client), reports_(reports) {}

  // `foreign_name` is "NAME" or "NAMESPACE:NAME". Safe to repeat after an interruption.
  Result<TableSchema> Attach(const TableSchema& schema, const std::string& foreign_name);
  Status Detach(const std::string& table);
  Status DetachForeign(const std::string& foreign_name);
  // A sentence for each indexed table that has no name, or shares one.
  Result<std::vector<std::string>> ListUnnamed();

 private:
  Result<TableSchema> AttachNow(const TableSchema& schema, const std::string& foreign_name);
  // For a table that has a schema: gives it the name, or restores attributes that were removed.
  Result<TableSchema> AttachAgain(const IndexedTable& before, const TableSchema& wanted);
  Status DetachNow(const std::string& table);
  Status DetachForeignNow(const std::string& foreign_name);
  Result<std::string> OwnName(const std::string& foreign_name) const;
  Result<hbase::TableDescription> DescribeForeign(const std::string& hbase_name);
  Status LookAtRows(const std::string& hbase_name, const TableSchema& schema);

  HBaseCluster* const cluster_;
  hbase::Client* const client_;
  ServerReports* const reports_;
};

}  // namespace tamis
