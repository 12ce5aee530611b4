// RocksJobs: the long work of an embedded cluster, as jobs: check, rebuild, fit cells, balance,
// compact. Start returns the number of a job; Find returns its progress and, at the end, its
// result.
//
// Threads: safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/cluster/job_table.h"
#include "tamis/rocks/region_changes.h"
#include "tamis/rocks/schema_changes.h"

namespace tamis {

class RocksJobs : public std::enable_shared_from_this<RocksJobs> {
 public:
  // All arguments must outlive this object.
  RocksJobs(Executor* executor, Store* store, Catalog* catalog, std::shared_ptr<ServerLives> lives,
            std::shared_ptr<RegionChanges> changes, SchemaChanges* schemas);

  void Start(JobSpec spec, Callback<uint64_t> done);
  Result<JobInfo> Find(uint64_t job) { return jobs_.Find(job); }

  // The work of the jobs. `part` is called after each part that was done.
  void Check(const std::string& table, Callback<CheckReport> done,
             const std::function<void()>& part);
  // Samples the entries of the index that stand now.
  void FitCells(const JobSpec& spec, DoneCallback done);
  void RebuildIndex(const std::string& table, const std::string& index, DoneCallback done,
                    const std::function<void()>& part);

 private:
  Result<uint64_t> CountParts(const JobSpec& spec) const;
  void Run(uint64_t job, const JobSpec& spec);

  Executor* const executor_;
  Store* const store_;
  Catalog* const catalog_;
  const std::shared_ptr<ServerLives> lives_;
  const std::shared_ptr<RegionChanges> changes_;
  SchemaChanges* const schemas_;
  JobTable jobs_;
};

}  // namespace tamis
