// TableJob: a check or a rebuild of all regions of a table. Each server does it for the regions
// that it has, as a job of its own; here they are started, asked for, and put together: a region
// that moved, split or merged meanwhile is done again where it is then, until regions that were
// done tile the table.
//
// Threads: one at a time; Run blocks, and must not be called from a task of the executor that
// answers come on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/cluster/check_report.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/hbase_cluster/hbase_cluster.h"

namespace tamis {

class TableJob {
 public:
  struct Options {
    pb::StartJobRequest::Kind kind = pb::StartJobRequest::CHECK;
    uint32_t index_id = 0;  // of a rebuild; 0: all
    // Without a region that was done, and without a word from who does one.
    Duration patience = std::chrono::minutes(1);
  };
  // Regions that are done, and all.
  using OnProgress = std::function<void(uint64_t done, uint64_t total)>;

  TableJob(HBaseCluster* cluster, Executor* executor, IndexedTable table, Options options,
           const std::atomic<bool>* cancelled);

  Status Run(const OnProgress& on_progress);
  // Of a check that ended well.
  CheckReport report() const;

 private:
  struct Part {  // of one server
    std::string server;
    uint64_t job = 0;
    std::vector<RegionId> regions;
    bool ended = false;
  };
  struct Done {
    std::string end;
    pb::RegionCheck check;
  };

  Wait Soon() const;
  Result<std::vector<Part>> StartMissing();
  Status Follow(std::vector<Part>* parts);
  void Take(const pb::RegionJobResult& result);
  bool IsWhole() const;

  HBaseCluster* const cluster_;
  Executor* const executor_;
  const IndexedTable table_;
  const uint32_t table_id_;
  const Options options_;
  const std::atomic<bool>* const cancelled_;
  std::map<std::string, Done> done_;  // by start key
  uint64_t total_ = 0;
  Time last_news_{};
  Status last_failure_;
  OnProgress on_progress_;
};

}  // namespace tamis
