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

namespace tamis {

class HBaseRegionChanges {
 public:
  // All arguments must outlive this object. A change is tried again for `patience`.
  HBaseRegionChanges(Executor* executor, Duration patience, hbase::Client* client,
                     RegionDirectory* regions)
      : executor_(executor), patience_(patience), client_(client), regions_(regions) {}

  // Splits the region at `key`, or near its middle if it is empty.
  Status Split(RegionId region, const std::string& key);
  // Merges the region with its right neighbour.
  Status Merge(RegionId region);
  Status Move(RegionId region, const std::string& server);

 private:
  // Repeats `work` while it fails for a reason that may end.
  Status RetryWhileBusy(const std::function<Status()>& work);
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
