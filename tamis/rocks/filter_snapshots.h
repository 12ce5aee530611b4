// FilterSnapshots: the filters' counters of all indexes, saved in the store when it is closed
// cleanly, so that the next opening need not count them again.
//
//   "L"                      -> SnapshotList: the saved snapshots, and the number of its own write
//   "S" region id, index id  -> IndexFilter::Snapshot
//
// The list is the last thing that is written before the store is closed. So the snapshots match the
// store exactly when nothing has been written since: when the list's number is still RocksDB's
// latest one. Opening a store writes, so at most one opening uses them. After a crash, and after
// any other write, none is used and filters are counted again.
//
// A snapshot is given out once: to the first server that opens the region. Nothing has been written
// to the region before; writes may follow.
//
// Threads: Take is safe; Save REQUIRES that nothing else writes to the store from its begin on.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "tamis/base/status.h"
#include "tamis/feed/index_filter.h"
#include "tamis/rocks/store.h"

namespace tamis {

class FilterSnapshots {
 public:
  struct Current {
    uint64_t region_id = 0;
    uint32_t index_id = 0;
    std::shared_ptr<const IndexFilter> filter;
  };

  // REQUIRES: nothing has been written to the store since it was opened.
  explicit FilterSnapshots(Store* store);

  // The snapshot of the region's index, unless it is out of date, cannot be read, or was taken.
  std::optional<std::string> Take(uint64_t region_id, uint32_t index_id);

  // Saves the filters, and deletes the snapshots of all others. A filter that is unchanged since it
  // was restored is not written again. After a failure the next opening uses no snapshot.
  Status Save(std::span<const Current> filters);

 private:
  using Id = std::pair<uint64_t, uint32_t>;

  static std::string Key(const Id& id);

  Store* const store_;
  bool believed_ = false;
  std::set<Id> stored_;
  std::mutex mutex_;
  std::set<Id> not_taken_;
};

}  // namespace tamis
