// HBaseTables: the indexed tables of a namespace, looked up by the schema's name at the master.
//
// Once found, a table is followed by its HBase name as long as it keeps the schema's name.
//
// Threads: safe. Names, CheckName, Named and Find block; do not call them from a task of the
// executor.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/hbase_cluster/table_names.h"

namespace tamis {

class HBaseTables {
 public:
  // Executor and client must outlive this object.
  HBaseTables(Executor* executor, std::string name_space, hbase::Client* client)
      : executor_(executor), name_space_(std::move(name_space)), client_(client) {}

  const std::string& name_space() const { return name_space_; }

  Result<TableNames> Names();
  // Fails if no table has the name, or several claim it.
  Status CheckName(const std::string& name);
  Result<std::vector<IndexedTable>> Named();  // tables that have a name
  Result<IndexedTable> Find(const std::string& name);
  // The tables of the namespace whose descriptions HBase hides from this user, because it checks
  // rights. Their names have no namespace.
  Result<std::vector<std::string>> Hidden();

  // The remembered result of a look-up.
  struct Known {
    std::string hbase_name;
    uint32_t table_id = 0;
    Time heard{};
  };
  Known KnownOf(const IndexedTable& table) const;
  std::optional<Known> Recall(const std::string& name) const;
  void Remember(const std::string& name, const Result<IndexedTable>& table);
  void Forget(const std::string& name);

 private:
  // Returns the table that last had the name, if it still has it.
  Result<std::optional<IndexedTable>> FindAgain(const std::string& name);
  // Returns why the user may not see the table; ok if HBase has no such table, or shows it.
  Status WhyHidden(const std::string& name);

  Executor* const executor_;
  const std::string name_space_;
  hbase::Client* const client_;
  mutable std::mutex mutex_;
  std::map<std::string, Known> known_;  // by the schema's name
};

}  // namespace tamis
