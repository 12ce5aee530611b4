#include "tamis/rocks/garbage_compactor.h"

#include <utility>

#include "tamis/rocks/store.h"

namespace tamis {

GarbageCompactor::~GarbageCompactor() {
  {
    std::lock_guard lock(mutex_);
    ended_ = cancelled_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GarbageCompactor::Note(uint64_t region_id) {
  std::lock_guard lock(mutex_);
  noted_.insert(region_id);
}

void GarbageCompactor::Start(uint64_t regions) {
  {
    std::lock_guard lock(mutex_);
    if (noted_.empty() || 4 * noted_.size() < regions || ended_) return;
    started_.merge(noted_);
    noted_.clear();
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  changed_.notify_all();
}

void GarbageCompactor::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return started_.empty() && !running_; });
}

void GarbageCompactor::Pause() {
  std::unique_lock lock(mutex_);
  paused_ = cancelled_ = true;
  changed_.wait(lock, [this] { return !running_; });
}

void GarbageCompactor::Continue() {
  {
    std::lock_guard lock(mutex_);
    paused_ = false;
    cancelled_ = ended_;
  }
  changed_.notify_all();
}

void GarbageCompactor::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || (!paused_ && !started_.empty()); });
    if (ended_) return;
    std::set<uint64_t> regions = std::exchange(started_, {});
    running_ = true;
    lock.unlock();
    while (!regions.empty() && !cancelled_) {
      const auto first = regions.begin();
      auto last = first, next = std::next(first);
      while (next != regions.end() && *next == *last + 1) last = next++;
      Compact(*first, *last);
      if (!cancelled_) regions.erase(first, next);
    }
    lock.lock();
    started_.merge(regions);  // a pause has cut these short
    running_ = false;
    changed_.notify_all();
  }
}

// A failure is none of the caller's: the garbage stays until it is compacted some other time.
void GarbageCompactor::Compact(uint64_t first_id, uint64_t last_id) {
  const std::string begin = RegionIndexPrefix(first_id), end = RegionIndexPrefix(last_id + 1);
  const rocksdb::Slice begin_slice(begin), end_slice(end);
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  options.canceled = &cancelled_;
  (void)db_->CompactRange(options, index_, &begin_slice, &end_slice);
}

}  // namespace tamis
