// TableCache: what an engine knows of tables and of where their regions are; may be old at any
// time.
//
// Threads: safe. What asks the cluster blocks, and must not be called from an executor's task.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/table/schema.h"

namespace tamis {

class TableCache {
 public:
  using Regions = std::shared_ptr<const std::vector<RegionInfo>>;

  // A question to the cluster fails after `timeout`.
  TableCache(Cluster* cluster, Executor* executor, Duration timeout)
      : cluster_(cluster), executor_(executor), timeout_(timeout) {}

  // As known; asks the cluster when it is not, or when a newer version has been heard of.
  Result<SchemaPtr> Table(const std::string& name);
  Result<SchemaPtr> RefreshTable(const std::string& name);

  // In key order; nullptr when they are not known.
  Regions KnownRegions(uint32_t table_id) const;
  // kCancelled when *cancelled became true meanwhile.
  Result<Regions> RefreshRegions(const TableSchema& table,
                                 const std::atomic<bool>* cancelled = nullptr);

  // A server tells which version the schema of a table has; 0 = the table was dropped.
  void Heard(uint32_t table_id, uint64_t version);

  // The table and its regions.
  void Forget(const std::string& name);

 private:
  Cluster* const cluster_;
  Executor* const executor_;
  const Duration timeout_;
  mutable std::mutex mutex_;
  std::map<std::string, SchemaPtr> tables_;
  std::map<uint32_t, Regions> regions_;    // by table id
  std::map<uint32_t, uint64_t> versions_;  // the newest that was heard of, by table id
};

}  // namespace tamis
