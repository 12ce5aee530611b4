// GarbageCompactor: drops the garbage entries of regions by compacting them, on a thread of its own
// that nothing waits for.
//
// After a split the entries of the upper half stand among those of the lower daughter, ordered by
// value, so that no range of keys holds only garbage. A compaction of the region's range drops what
// the store's view calls garbage (Store::SetGarbage) and nothing else, at any time and after any
// crash. Garbage that an interrupted compaction leaves is dropped by RocksDB's own compactions.
//
// Regions are noted when garbage comes about and compacted together: files hold entries of several
// regions, and each compaction writes them again. So a compaction waits until a quarter of the
// regions is noted; what is left is at most an eighth of all entries after splits.
//
// Threads: safe.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>

namespace tamis {

class GarbageCompactor {
 public:
  // Both must outlive the compactor.
  GarbageCompactor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* index) : db_(db), index_(index) {}
  // Breaks off what runs.
  ~GarbageCompactor();

  GarbageCompactor(const GarbageCompactor&) = delete;
  GarbageCompactor& operator=(const GarbageCompactor&) = delete;

  void Note(uint64_t region_id);
  // Begins with what has been noted, when that is a quarter of so many regions.
  void Start(uint64_t regions);
  // Returns when all that was started is done.
  void Wait();

  // Breaks off what runs and begins nothing until Continue, which takes up what was broken off.
  void Pause();
  void Continue();

 private:
  void Run();
  void Compact(uint64_t first_id, uint64_t last_id);

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const index_;
  std::atomic<bool> cancelled_ = false;  // the running compaction is to end
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<uint64_t> noted_;
  std::set<uint64_t> started_;
  bool running_ = false;
  bool paused_ = false;
  bool ended_ = false;
  std::thread thread_;  // once there is something to do
};

}  // namespace tamis
