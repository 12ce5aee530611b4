// RegionMap: where the regions of the tables are, as the cluster last told; may be old at any time.
//
// Threads: safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tamis/cluster/cluster.h"

namespace tamis {

class RegionMap {
 public:
  using Regions = std::shared_ptr<const std::vector<RegionInfo>>;

  // nullptr when it is not known.
  Regions Get(uint32_t table_id) const {
    std::lock_guard lock(mutex_);
    auto found = tables_.find(table_id);
    return found == tables_.end() ? nullptr : found->second;
  }
  // Returns what is known from now on.
  Regions Set(uint32_t table_id, std::vector<RegionInfo> regions) {
    auto shared = std::make_shared<const std::vector<RegionInfo>>(std::move(regions));
    std::lock_guard lock(mutex_);
    tables_[table_id] = shared;
    return shared;
  }
  void Forget(uint32_t table_id) {
    std::lock_guard lock(mutex_);
    tables_.erase(table_id);
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, Regions> tables_;
};

}  // namespace tamis
