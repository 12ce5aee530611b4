// ServerReports: what the master and the region servers report about themselves: whether they load
// the jar and how they are set up (Installation), and the state of their filters and indexes.
//
// Threads: safe. Calls block.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/installation.h"
#include "tamis/hbase_cluster/region_directory.h"

namespace tamis {

class ServerReports {
 public:
  // All arguments must outlive this object. Setting `closed` ends the calls that run.
  ServerReports(Executor* executor, HBaseCluster* cluster, hbase::Client* client,
                RegionDirectory* regions, const std::atomic<bool>* closed)
      : executor_(executor),
        cluster_(cluster),
        client_(client),
        regions_(regions),
        closed_(*closed) {}

  // Reports nothing about servers that have no indexed regions or do not answer.
  Result<ClusterStatus> GetStatus();
  Result<IndexProgress> GetIndexProgress(const std::string& table, const std::string& index);
  // Fails if a process does not load the jar, or one that does not support an index of the table.
  // Processes that refuse to answer this user count only if `strict`.
  Status CheckJar(bool strict, const TableSchema& table);
  Result<std::vector<Finding>> Examine();

 private:
  // Returns the replies in the order of the servers.
  std::vector<Result<pb::StatusReply>> AskStatus(const std::vector<std::string>& servers,
                                                 uint32_t table_id);
  // Leaves out the tables.
  Result<Installation> AskProcesses();

  Executor* const executor_;
  HBaseCluster* const cluster_;
  hbase::Client* const client_;
  RegionDirectory* const regions_;
  const std::atomic<bool>& closed_;
};

}  // namespace tamis
