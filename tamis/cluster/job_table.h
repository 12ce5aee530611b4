// JobTable: the jobs of a cluster: the running ones, and the last ones that have ended, by number.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "tamis/cluster/cluster_admin.h"

namespace tamis {

class JobTable {
 public:
  // Adds a running job of `total` parts; returns its number.
  uint64_t Add(JobSpec spec, uint64_t total);
  // Changes the progress of a job that has not ended.
  void Update(uint64_t job, const std::function<void(JobInfo*)>& change);
  void End(uint64_t job, const Status& status);
  Result<JobInfo> Find(uint64_t job) const;

 private:
  mutable std::mutex mutex_;
  uint64_t next_ = 1;
  std::map<uint64_t, JobInfo> jobs_;  // running jobs, and the last ones that have ended
};

}  // namespace tamis
