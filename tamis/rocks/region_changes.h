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
  // With the next region in key order.
  void Merge(RegionId region, DoneCallback done);
  // Moves regions until no server has two more than another. The result is the number of moves.
  void Balance(Callback<uint64_t> done);
  // Starts a Balance in the background, unless one is under way.
  void BalanceSoon();
  // Number of moves under way, plus one if a balance is.
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
