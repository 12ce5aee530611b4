// HBaseJobs: the long work on an HBase: check, rebuild, fit cells, balance, compact; started, and
// asked for.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/cluster/job_table.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/hbase_schema_changes.h"
#include "tamis/hbase_cluster/region_directory.h"
#include "tamis/hbase_cluster/table_job.h"
#include "tamis/hbase_cluster/workers.h"

namespace tamis {

class HBaseJobs {
 public:
  // All pointers must outlive this object. Setting `closed` ends the calls that run. A compaction
  // without progress fails after `patience`.
  HBaseJobs(Executor* executor, Duration patience, HBaseCluster* cluster, hbase::Client* client,
            RegionDirectory* regions, HBaseSchemaChanges* schema_changes,
            const std::atomic<bool>* closed);
  // Ends the threads; jobs that have not ended never do. REQUIRES: `closed` is set, and the client
  // is closed.
  void Stop() { workers_.Stop(); }

  // Blocks while the table is looked up.
  Result<uint64_t> Start(const JobSpec& spec);
  Result<JobInfo> Find(uint64_t job) { return jobs_->Find(job); }

 private:
  Workers::Step StepsOf(uint64_t job, const JobSpec& spec, std::optional<IndexedTable> table);
  Workers::Step StepsOfTable(uint64_t job, const JobSpec& spec, const IndexedTable& table);
  Workers::Step StepsOfCells(uint64_t job, const JobSpec& spec, const IndexedTable& table);
  std::shared_ptr<TableJob> NewTableJob(const IndexedTable& table, TableJob::Options options);
  Workers::Step StepsOfCompaction(uint64_t job);
  void SetProgress(uint64_t job, uint64_t done, uint64_t total);

  Executor* const executor_;
  const Duration patience_;
  HBaseCluster* const cluster_;
  hbase::Client* const client_;
  RegionDirectory* const regions_;
  HBaseSchemaChanges* const schema_changes_;
  const std::atomic<bool>& closed_;
  const std::shared_ptr<JobTable> jobs_;  // also of the executor's tasks
  Workers workers_;
};

}  // namespace tamis
