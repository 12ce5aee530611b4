// TableJob: a check, a rebuild or a sample of all regions of a table. Each server runs a job of its
// own for its regions; TableJob starts these jobs, polls them, and combines the results. A region
// that was moved, split or merged meanwhile is processed again at its new server, until the
// processed regions tile the table.
//
// Threads: one at a time; Step blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/backoff.h"
#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/cluster/check_report.h"
#include "tamis/cluster/cluster.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/table/value_sample.h"

namespace tamis {

class TableJob {
 public:
  // Each call blocks.
  struct Actions {
    std::function<Result<std::vector<RegionInfo>>()> list;
    std::function<Result<pb::StartJobReply>(const std::string& server, const pb::StartJobRequest&)>
        start;
    std::function<Result<pb::GetJobReply>(const std::string& server, const pb::GetJobRequest&,
                                          const std::vector<RegionId>& regions)>
        get;
    std::function<Time()> now;
  };
  struct Options {
    pb::StartJobRequest::Kind kind = pb::StartJobRequest::CHECK;
    uint32_t index_id = 0;     // for a rebuild, where 0 is all indexes, and for a sample
    uint64_t sample_size = 0;  // values of all regions together, about
    // The longest time in which no region is finished and no server reports that its job is
    // running.
    Duration patience = std::chrono::minutes(1);
  };
  // The number of finished regions, and of all regions.
  using OnProgress = std::function<void(uint64_t done, uint64_t total)>;

  TableJob(Actions actions, uint32_t table_id, Options options);

  // Starts and polls jobs once. Returns the pause before the next step; nullopt when all regions
  // are done. Returns kUnavailable if `patience` is over. An error that is not transient ends the
  // job at once.
  Result<std::optional<Duration>> Step(const OnProgress& on_progress);
  // The combined result of a check. REQUIRES: all regions are done.
  CheckReport report() const;
  // One sample a region. REQUIRES: all regions are done.
  std::vector<ValueSample> samples() const;

 private:
  struct Part {  // the job of one server
    std::string server;
    uint64_t job = 0;
    std::vector<RegionId> regions;
    bool ended = false;
  };
  struct Done {
    std::string end;
    pb::RegionCheck check;
    pb::ValueSample sample;
  };

  bool IsPolling() const;
  Result<std::vector<Part>> StartMissing();
  Status Poll();
  void Take(const pb::RegionJobResult& result);
  bool IsWhole() const;

  const Actions actions_;
  const uint32_t table_id_;
  const Options options_;
  std::map<std::string, Done> done_;  // by start key
  uint64_t total_ = 0;
  std::vector<Part> parts_;
  size_t done_before_ = 0;  // finished regions when `parts_` were started
  Backoff polls_;
  Backoff pauses_;
  std::optional<Time> last_news_;
  Status last_failure_;
  OnProgress on_progress_;
};

}  // namespace tamis
