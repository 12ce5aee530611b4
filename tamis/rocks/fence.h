// Fence: the epoch of a region as the store knows it, outside the memory of any region server.
//
// A server holds it shared from comparing its epoch to the end of its write (or to the taking of
// its read snapshot); opening a region elsewhere takes it exclusively, and whoever changes what the
// catalog says of a region holds it from looking to having advanced it. So a server that was paused
// and wakes up after its region has moved can neither commit to it nor answer a search of it.
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
  // Raises the epoch; what holds the fence shared is waited for. Epochs never fall.
  void Advance(uint64_t epoch) {
    auto lock = Exclude();
    AdvanceExcluded(epoch);
  }
  // For a change that may fail: held exclusively during it, advanced once it has come about.
  std::unique_lock<std::shared_mutex> Exclude() { return std::unique_lock(mutex_); }
  void AdvanceExcluded(uint64_t epoch) { epoch_ = std::max(epoch_, epoch); }

  // A lock that is held while epoch is the current one; empty when it is not.
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
