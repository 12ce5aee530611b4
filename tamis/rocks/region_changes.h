// RegionChanges: splits, merges and moves regions of an embedded cluster, and balances its servers.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/rocks/region_assignment.h"

namespace tamis {

class RegionChanges : public std::enable_shared_from_this<RegionChanges> {
 public:
  // All arguments must outlive this object. A request that a server does not answer within
  // `timeout` has failed.
  RegionChanges(Executor* executor, Duration timeout, Catalog* catalog, FenceTable* fences,
                std::shared_ptr<ServerLives> lives, std::shared_ptr<RegionAssignment> assignment);

  // At `key`, or near the middle when empty.
  void Split(RegionId region, std::string key, DoneCallback done);
  void Move(RegionId region, const std::string& target, DoneCallback done);
  // With the one behind it.
  void Merge(RegionId region, DoneCallback done);
  // Moves regions until no server has two more than another; how many were moved.
  void Balance(Callback<uint64_t> done);
  // The same, unless it is under way.
  void BalanceSoon();
  // Moves under way, and one for the balance.
  size_t pending() const;

 private:
  Result<pb::RegionRecord> FindRegion(RegionId region, std::string_view doing) const;
  DoneCallback Once(const std::string& doing, DoneCallback done) const;
  Status CommitMerge(const pb::RegionRecord& left, const pb::RegionRecord& right, Duration wait);
  void BalanceNext(std::shared_ptr<uint64_t> moved, Callback<uint64_t> done);

  Executor* const executor_;
  const Duration timeout_;
  Catalog* const catalog_;
  FenceTable* const fences_;
  const std::shared_ptr<ServerLives> lives_;
  const std::shared_ptr<RegionAssignment> assignment_;
  std::atomic<int> moving_ = 0;
  std::atomic<bool> balancing_ = false;
};

}  // namespace tamis
