// HBaseRegionChanges: splits, merges and moves regions of an HBase, through its master.
//
// HBase refuses to split or merge a region again before the region has been compacted, its old
// files are deleted, and hbase:meta is cleaned up; it does the last two every two and five minutes.
// So a change requests a compaction and is tried again.
//
// Threads: safe. Calls block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/region_id.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/region_directory.h"
#include "tamis/hbase_cluster/workers.h"

namespace tamis {

class HBaseRegionChanges {
 public:
  // All arguments must outlive this object. A change is tried again for `patience`.
  HBaseRegionChanges(Executor* executor, Duration patience, hbase::Client* client,
                     RegionDirectory* regions)
      : executor_(executor), patience_(patience), client_(client), regions_(regions) {}

  // Splits the region at `key`, or near its middle if it is empty.
  Workers::Step Split(RegionId region, std::string key);
  // Merges the region with its right neighbour.
  Workers::Step Merge(RegionId region);
  Workers::Step Move(RegionId region, std::string server);

 private:
  // Repeats `attempt` while it fails for a reason that may end. `what` begins the error's message.
  Workers::Step Tries(std::string what, std::function<Status()> attempt);
  Status TryMerge(RegionId region);
  Status TryMove(RegionId region, const std::string& server);
  // Returns `refused`. Requests a compaction of the regions if that may end the reason.
  Status AfterCompaction(const std::vector<hbase::Region>& regions, Status refused);
  Status SplitNow(const hbase::Region& region, std::string key);
  Result<std::string> MiddleOf(const hbase::Region& region);

  Executor* const executor_;
  const Duration patience_;
  hbase::Client* const client_;
  RegionDirectory* const regions_;
};

}  // namespace tamis
