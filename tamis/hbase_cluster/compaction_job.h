// CompactionJob: all regions of some tables are flushed and compacted, wherever they are by then: a
// region that moves or is open nowhere is asked for again, one that has split or merged is no more,
// and what came of it is compacted in its place.
//
// Threads: one at a time; Run blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/hbase/region.h"

namespace tamis {

class CompactionJob {
 public:
  // Each blocks for as long as one call takes. Begin: a flush, since what stands in memory is not
  // compacted, and a major compaction, which goes on when it returns.
  struct Actions {
    std::function<Result<std::vector<hbase::RegionPtr>>()> list;
    std::function<Status(const hbase::Region&)> begin;
    std::function<Result<bool>(const hbase::Region&)> is_compacting;
    std::function<Time()> now;
    std::function<Status(Duration)> pause;  // an error ends the job
  };
  // Regions that are done, and all.
  using OnProgress = std::function<void(uint64_t done, uint64_t total)>;

  // `patience`: without a region that begins, is compacted, or is done.
  CompactionJob(Actions actions, Duration patience)
      : actions_(std::move(actions)), patience_(patience) {}

  // kUnavailable: patience is over. An error that another attempt would meet again ends it at once.
  Status Run(const OnProgress& on_progress);

 private:
  // Advances the work on one region; true: it is done.
  Result<bool> Advance(const hbase::Region& region);

  const Actions actions_;
  const Duration patience_;
  std::map<std::string, hbase::ServerName> begun_;  // by the region's encoded name
  std::set<std::string> done_;
  Time last_news_{};
  Status last_failure_;
};

}  // namespace tamis
