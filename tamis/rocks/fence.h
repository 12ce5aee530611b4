// Fence: the current epoch of a region. It belongs to the store, not to a region server.
//
// A server holds the fence shared from the comparison with its own epoch until its write is done,
// or until its read snapshot is taken. A catalog change that gives the region a new epoch holds
// the fence exclusively, from reading the region's record until the epoch is advanced. So a server
// that was paused, and wakes up after its region has moved, can neither write to the region nor
// answer a search of it.
//
// Threads: safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace tamis {

class Fence {
 public:
  // Raises the epoch, after all shared holders have released the fence. A lower epoch changes
  // nothing.
  void Advance(uint64_t epoch) {
    auto lock = Exclude();
    AdvanceExcluded(epoch);
  }
  // For a change that may fail: the caller holds the returned lock during the change, and calls
  // AdvanceExcluded if the change succeeded.
  std::unique_lock<std::shared_mutex> Exclude() { return std::unique_lock(mutex_); }
  void AdvanceExcluded(uint64_t epoch) { epoch_ = std::max(epoch_, epoch); }

  // Returns a shared lock if `epoch` is the current epoch, which stays current while the lock is
  // held; otherwise an empty lock.
  std::shared_lock<std::shared_mutex> Enter(uint64_t epoch) {
    std::shared_lock lock(mutex_);
    if (epoch != epoch_) lock.unlock();
    return lock;
  }

 private:
  std::shared_mutex mutex_;
  uint64_t epoch_ = 0;
};

class FenceTable {
 public:
  std::shared_ptr<Fence> Of(uint64_t region_id) {
    std::lock_guard lock(mutex_);
    auto& fence = fences_[region_id];
    if (!fence) fence = std::make_shared<Fence>();
    return fence;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Fence>> fences_;
};

}  // namespace tamis
