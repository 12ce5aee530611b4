// HookState: the state that the hooks of one database share, and the delivery of RocksDB's events
// to its TreeFilter.
//
// Threads: safe.
#pragma once

#include <rocksdb/listener.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "tamis/lsm/bypassed_memtables.h"
#include "tamis/lsm/collected_keys.h"
#include "tamis/lsm/tree_filter.h"
#include "tamis/lsm/uncounted_families.h"

namespace tamis::lsm {

// The number in the name of an SST file.
TreeFilter::FileNumber FileNumberOf(const std::string& path);

class HookState {
 public:
  // The name that the hooks have in RocksDB.
  static constexpr char kHookName[] = "tamis.lsm";
  // The property of an SST file that has the number of its collection.
  static constexpr char kCollection[] = "tamis.lsm.collection";
  static constexpr uint32_t kNoFamily = INT32_MAX;  // the family of files that are written outside

  explicit HookState(std::unique_ptr<TreeFilter> tree)
      : tree_(std::move(tree)),
        uncounted_(&tree_->families()),
        bypassed_(&tree_->families(), tree_->faults().ignore_bypass) {}

  TreeFilter& tree() { return *tree_; }
  CollectedKeys& collected() { return collected_; }
  const CollectedKeys& collected() const { return collected_; }
  UncountedFamilies& uncounted() { return uncounted_; }
  BypassedMemtables& bypassed() { return bypassed_; }

  void OnCreated(const rocksdb::TableFileCreationInfo& info);
  void OnDeleted(const std::string& database, const std::string& path);
  void OnFlushed(const std::string& database, const std::string& path);
  void OnIngested(const rocksdb::ExternalFileIngestionInfo& info);

  // The caller that announced an ingestion learns under which number each file came in.
  struct Expected {
    uint32_t family;
    std::string external_path;
    FileIdentity identity;  // the file whose keys were counted
    TreeFilter::Ticket ticket;
  };
  void Expect(const Expected& file);
  void ExpectNoMore(uint32_t family, const std::string& external_path, TreeFilter::Ticket ticket);

  // The latest family of that name; an earlier one was dropped.
  void NameFamily(const std::string& name, uint32_t id);
  // nullopt when no handle of the family was shown.
  std::optional<uint32_t> FamilyNamed(const std::string& name) const;
  // The family of a file that was made, also when no handle was shown.
  std::optional<uint32_t> FamilyOf(const rocksdb::TableFileCreationInfo& info) const;

  // The same in uncounted(), and the thread that counts the files is woken.
  void AddUncounted(uint32_t family);
  void ArrivalEnded(uint32_t family) noexcept;

  // Names the database whose events count; those of others that were opened with our options do
  // not: their files have the same numbers. Until then nothing counts, because the filter's
  // database is not known; what has been installed by then is found among the live files. A family
  // of which a file is being flushed at this moment passes through until that file is installed and
  // counted. False when there is another name already. May be called again after std::bad_alloc.
  bool SetDatabase(const std::string& name);
  bool IsOurs(const std::string& database) const;

  // Called when there is something to reconcile or to count; from RocksDB's threads.
  void SetWake(std::function<void()> wake);

 private:
  void Wake();
  // The file was installed or deleted, or will never be.
  void Finish(const std::string& database, TreeFilter::FileNumber number);
  // Whether the file counts now. If not, it is noted where that is needed.
  bool Counts(const rocksdb::TableFileCreationInfo& info, std::optional<uint32_t> family);

  const std::unique_ptr<TreeFilter> tree_;
  CollectedKeys collected_;
  UncountedFamilies uncounted_;
  BypassedMemtables bypassed_;
  mutable std::mutex mutex_;
  std::multimap<std::pair<uint32_t, std::string>, Expected> expected_;  // by family and path
  std::map<std::string, uint32_t> families_;
  std::string database_;  // "" = not known yet
  // Files that were written before the database was known, and perhaps are not installed yet.
  struct Unfinished {
    uint32_t family;
    bool passes_through = false;  // the family, because of this file
  };
  std::map<std::pair<std::string, TreeFilter::FileNumber>, Unfinished> unfinished_;
  std::mutex waking_;
  std::function<void()> wake_;
};

// RocksDB's threads must not see exceptions; of ours there is only a lack of memory. True when the
// work was done.
template <class Work>
bool Attempt(Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (...) {
    return false;
  }
}

// If the work was not done, the family passes through.
template <class Work>
bool Guarded(HookState* state, std::optional<uint32_t> family, Work&& work) noexcept {
  const bool is_done = Attempt(work);
  if (!is_done && family.has_value()) state->tree().families().AddBypassReasons(*family, kNoMemory);
  return is_done;
}

}  // namespace tamis::lsm
