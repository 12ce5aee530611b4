// HBaseTables: the indexed tables of a namespace, looked up by the schema's name at the master.
//
// Once found, a table is followed by its HBase name as long as it keeps the schema's name.
//
// Where HBase checks rights, the master shows a table's description only to users with C or A on
// the table. To a user who may read the table, one of its regions tells the schema; FindReadable
// and Readable include such tables. Their descriptions have a name and the attributes of Tamis
// only, so they must not be used to change a table.
//
// Threads: safe. All but KnownOf, Recall, Remember and Forget block; do not call them from a task
// of the executor.
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
  Result<IndexedTable> Find(const std::string& name);
  Result<IndexedTable> FindReadable(const std::string& name);
  Result<std::vector<IndexedTable>> Readable();  // the tables that have a name
  // The tables of the namespace whose descriptions HBase hides from this user and that the user may
  // not read. Their names have no namespace.
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
  using Describe = Result<hbase::TableDescription> (HBaseTables::*)(const std::string&);

  // The description at the master.
  Result<hbase::TableDescription> Described(const std::string& hbase_table);
  // The same, or if HBase hides it, what a region tells.
  Result<hbase::TableDescription> DescribedToReaders(const std::string& hbase_table);
  Result<std::vector<hbase::TableDescription>> List();  // the tables that the master shows
  // The tables of the namespace that the list leaves out. Their names have no namespace.
  Result<std::vector<std::string>> HiddenNames(
      const std::vector<hbase::TableDescription>& described);
  // The names of all tables. Tables that are hidden and cannot be read are added to `hidden`,
  // unless it is null.
  Result<TableNames> ReadableNames(std::vector<std::string>* hidden);
  Result<IndexedTable> Find(const std::string& name, Describe describe);
  Result<IndexedTable> Look(const std::string& name, Describe describe);
  // Returns the table that last had the name, if it still has it.
  Result<std::optional<IndexedTable>> FindAgain(const std::string& name, Describe describe);
  // Returns why the user may not see the table, if it is one of the hidden ones.
  Status WhyHidden(const std::string& name, const std::vector<std::string>& hidden,
                   Describe describe);

  Executor* const executor_;
  const std::string name_space_;
  hbase::Client* const client_;
  mutable std::mutex mutex_;
  std::map<std::string, Known> known_;  // by the schema's name
};

}  // namespace tamis
