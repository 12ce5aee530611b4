// TableJob: a check or a rebuild of all regions of a table. Each server does it for the regions
// that it has, as a job of its own; here they are started, asked for, and put together: a region
// that moved, split or merged meanwhile is done again where it is then, until regions that were
// done tile the table.
//
// Threads: one at a time; Run blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/cluster/check_report.h"
#include "tamis/cluster/cluster.h"
#include "tamis/cluster/cluster.pb.h"

namespace tamis {

class TableJob {
 public:
  // Each blocks for as long as one call takes.
  struct Actions {
    std::function<Result<std::vector<RegionInfo>>()> list;
    std::function<Result<pb::StartJobReply>(const std::string& server, const pb::StartJobRequest&)>
        start;
    std::function<Result<pb::GetJobReply>(const std::string& server, const pb::GetJobRequest&,
                                          const std::vector<RegionId>& regions)>
        get;
    std::function<Time()> now;
    std::function<Status(Duration)> pause;  // an error ends the job
  };
  struct Options {
    pb::StartJobRequest::Kind kind = pb::StartJobRequest::CHECK;
    uint32_t index_id = 0;  // of a rebuild; 0: all
    // Without a region that was done, and without a word from who is at one.
    Duration patience = std::chrono::minutes(1);
  };
  // Regions that are done, and all.
  using OnProgress = std::function<void(uint64_t done, uint64_t total)>;

  TableJob(Actions actions, uint32_t table_id, Options options)
      : actions_(std::move(actions)), table_id_(table_id), options_(options) {}

  // kUnavailable: patience is over. An error that another attempt does not mend ends it at once.
  Status Run(const OnProgress& on_progress);
  // The report of a check that ended well.
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

  Result<std::vector<Part>> StartMissing();
  Status Follow(std::vector<Part>* parts);
  void Take(const pb::RegionJobResult& result);
  bool IsWhole() const;

  const Actions actions_;
  const uint32_t table_id_;
  const Options options_;
  std::map<std::string, Done> done_;  // by start key
  uint64_t total_ = 0;
  Time last_news_{};
  Status last_failure_;
  OnProgress on_progress_;
};

}  // namespace tamis
