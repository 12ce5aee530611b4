// FileCounter: counts the live files of a database in its filter, and reconciles the deleted ones,
// on a thread of its own.
//
// The thread first counts all live files. Afterwards it works when it is woken: files came in that
// nobody counted (UncountedFamilies), or files were deleted. A step that finds no memory is tried
// again later; meanwhile the families that it is about pass through.
//
// Threads: safe; Start and Stop one at a time.
#pragma once

#include <rocksdb/db.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tamis/lsm/hook_state.h"

namespace tamis::lsm {

class FileCounter {
 public:
  // `hooks` must outlive it. `forgets_dropped`: a fault (faults.h), for tests.
  FileCounter(HookState* hooks, bool forgets_dropped)
      : hooks_(*hooks), tree_(hooks->tree()), forgets_dropped_(forgets_dropped) {}
  ~FileCounter() { Stop(); }

  // Throws std::system_error if no thread can be started.
  void Start(rocksdb::DB* db);
  void Stop();
  bool IsRunning() const { return thread_.joinable(); }
  // There may be something to reconcile or to count.
  void Wake();

  // Both end at Stop, too.
  // Blocks until the live files are counted.
  void WaitUntilCounted();
  // Blocks until the live files are counted and the deleted ones are reconciled (tree_filter.h).
  void WaitUntilReconciled();

 private:
  struct LiveFile {
    std::string family;
    uint64_t number;
    std::string path;
  };

  void Run();
  // Both return false when memory does not suffice; they are to be called again then.
  bool CountUnknown() noexcept;
  bool CountAndReconcile() noexcept;
  // Counts the live files. `uncounted`: families that passed through because files came in; they
  // answer again afterwards.
  void CountLiveFiles(const std::set<uint32_t>& uncounted);
  bool HasWork() const;
  bool Stops();
  // Also the files of a dropped family, which can be read while the program has a handle of it.
  std::vector<LiveFile> LiveFiles() const;
  // The id of the file's family. nullopt if the family passes through anyway: its handle was not
  // shown, or another of its files cannot be counted.
  std::optional<uint32_t> FamilyOf(const LiveFile& live) const;

  HookState& hooks_;
  TreeFilter& tree_;  // theirs
  const bool forgets_dropped_;
  rocksdb::DB* db_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  bool stops_ = false;
  bool woken_ = false;
  bool counted_ = false;
  bool busy_ = false;
  std::thread thread_;
};

}  // namespace tamis::lsm
