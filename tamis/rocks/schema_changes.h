// SchemaChanges: makes, changes and drops tables of an embedded cluster. tamis/table decides which
// changes are allowed; this class writes them to the catalog, one at a time, and waits until the
// region servers follow.
//
// Threads: safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/rocks/region_assignment.h"
#include "tamis/table/schema.h"

namespace tamis {

class SchemaChanges {
 public:
  // All arguments must outlive this object. A server that does not follow within `timeout` is an
  // error. `seed` determines the seeds of new indexes; 0 = drawn from the system.
  SchemaChanges(Executor* executor, Duration timeout, uint64_t seed, Catalog* catalog,
                FenceTable* fences, std::shared_ptr<ServerLives> lives,
                std::shared_ptr<RegionAssignment> assignment);

  Result<TableSchema> Create(TableSchema schema);
  Status Drop(const std::string& table);
  void AddColumn(const std::string& table, Column column, Callback<TableSchema> done);
  void DropColumn(const std::string& table, const std::string& column, Callback<TableSchema> done);
  void CreateIndex(const std::string& table, IndexSpec index, Callback<TableSchema> done);
  void DropIndex(const std::string& table, const std::string& index, Callback<TableSchema> done);
  void SetCellMap(const std::string& table, const std::string& index,
                  std::shared_ptr<const CellMap> map, Callback<TableSchema> done);

 private:
  Status Commit(TableSchema* schema, pb::RegionRecord* region);
  Status CommitDrop(const std::string& name);
  void Change(const std::string& table, Callback<TableSchema> done,
              const std::function<Result<TableSchema>(TableSchema)>& change);
  Result<TableSchema> CommitChange(const std::string& table,
                                   const std::function<Result<TableSchema>(TableSchema)>& change);
  void Broadcast(const TableSchema& schema, Callback<TableSchema> done);
  uint64_t NewSeed(uint32_t table_id, uint32_t index_id) const;

  Executor* const executor_;
  const Duration timeout_;
  const uint64_t seed_;
  Catalog* const catalog_;
  FenceTable* const fences_;
  const std::shared_ptr<ServerLives> lives_;
  const std::shared_ptr<RegionAssignment> assignment_;
  std::mutex mutex_;  // one change at a time
};

}  // namespace tamis
