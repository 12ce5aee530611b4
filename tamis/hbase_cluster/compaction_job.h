// CompactionJob: flushes and compacts all regions of some tables. A region that moves or is open
// nowhere is tried again at its new server. When a region is split or merged, its successors are
// compacted instead.
//
// Threads: one at a time; Step blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tamis/base/backoff.h"
#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/hbase/region.h"

namespace tamis {

class CompactionJob {
 public:
  // Each call blocks. `begin` flushes the region, since a compaction does not include the memstore,
  // and requests a major compaction, which continues in the background.
  struct Actions {
    std::function<Result<std::vector<hbase::RegionPtr>>()> list;
    std::function<Status(const hbase::Region&)> begin;
    std::function<Result<bool>(const hbase::Region&)> is_compacting;
    std::function<Time()> now;
  };
  // The number of finished regions, and of all regions.
  using OnProgress = std::function<void(uint64_t done, uint64_t total)>;

  // `patience`: the longest time in which no region begins, is being compacted, or finishes.
  CompactionJob(Actions actions, Duration patience);

  // Looks at each region once. Returns the pause before the next step; nullopt when all regions are
  // done. Returns kUnavailable if `patience` is over. An error that is not transient ends the job
  // at once.
  Result<std::optional<Duration>> Step(const OnProgress& on_progress);

 private:
  // Takes the next step for one region. Returns true if the region is done.
  Result<bool> Advance(const hbase::Region& region);

  const Actions actions_;
  const Duration patience_;
  std::map<std::string, hbase::ServerName> begun_;  // by the region's encoded name
  std::set<std::string> done_;
  Backoff pauses_;
  std::optional<Time> last_news_;
  Status last_failure_;
};

}  // namespace tamis
