// The hooks through which a stock RocksDB tells a TreeFilter what happens: a collector of the keys
// of each SST file that is written, a listener, and a factory of memtables.
//
// They keep the names of what they wrap, so that the OPTIONS file stays readable without us. None
// of them makes a call of RocksDB fail, or throws: after an error, a lack of memory included, the
// column family passes through.
#pragma once

#include <rocksdb/listener.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tamis/lsm/tree_filter.h"

namespace tamis::lsm {

// The number in the name of an SST file.
TreeFilter::FileNumber FileNumberOf(const std::string& path);

// The state that the hooks of one database share.
class HookState {
 public:
  explicit HookState(std::unique_ptr<TreeFilter> tree) : tree_(std::move(tree)) {}

  TreeFilter& tree() { return *tree_; }

  // Takes the keys of a file that is being written, under the number that its properties will have.
  // The thread that has written the file announces it (OnCreated) before it announces any other
  // file. So at OnCreated all that the thread has collected and not announced is forgotten.
  void Collected(uint64_t collection, uint32_t family, std::vector<uint64_t> hashes);
  size_t CollectionCount() const;  // collected, and not announced yet
  void OnCreated(const rocksdb::TableFileCreationInfo& info);
  void OnDeleted(const std::string& path);
  void OnFlushed() { Wake(); }
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

  // Notes a family into which files came that are not counted: it passes through until they are.
  // The thread that counts the files takes the noted families (TakeUncounted).
  void AddUncounted(uint32_t family);
  // Around an arrival of files: the family passes through from its begin on, and AddUncounted is
  // done at its end.
  void ArrivalBegan(uint32_t family);
  void ArrivalEnded(uint32_t family) noexcept;
  std::set<uint32_t> TakeUncounted();
  void GiveBackUncounted(std::set<uint32_t> families) noexcept;  // they could not be counted
  bool HasUncounted() const;
  // The files of these families are counted: a family into which no files have come since
  // TakeUncounted answers again.
  void HaveCounted(const std::set<uint32_t>& families);

  // Since RocksDB 10 a batch can become an immutable memtable as it is, which no factory makes and
  // whose keys no hook is told of until it is flushed (DB::IngestWriteBatchWithIndex,
  // TransactionOptions::commit_bypass_memtable). It comes with a seal of the family's memtable,
  // which is announced before the keys of the batch can be read. So at each seal the immutable
  // memtables that RocksDB has are compared with those that our factory has made: if there is one
  // more, the family passes through until no immutable memtable is left.
  // From ShowHandle on, until ForgetHandles; a handle that is deleted is forgotten before.
  void ShowHandle(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle);
  void ForgetHandle(rocksdb::ColumnFamilyHandle* handle);
  void ForgetHandles();
  void OnMemtableSealed(const std::string& family_name);
  void OnMemtableFlushed(const std::string& family_name);

  // Events of another database are ignored, even if it was opened with our options.
  void SetDatabase(const std::string& name);
  bool IsOther(const std::string& database) const;

  // Called when there is something to reconcile or to count; from RocksDB's threads.
  void SetWake(std::function<void()> wake);

 private:
  struct Collection {
    uint32_t family;
    std::thread::id collector;
    std::vector<uint64_t> hashes;
  };

  // The number of the family's immutable memtables; nullopt: RocksDB cannot be asked.
  // REQUIRES: handles_mutex_ is held.
  std::optional<uint64_t> ImmutableMemtables(uint32_t family) const;
  void CheckMemtables(uint32_t family);  // REQUIRES: handles_mutex_ is held

  void Wake();
  void ForgetCollectionsOfThread();  // REQUIRES: mutex_ is held

  const std::unique_ptr<TreeFilter> tree_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Collection> collections_;
  std::multimap<std::pair<uint32_t, std::string>, Expected> expected_;  // by family and path
  std::map<std::string, uint32_t> families_;
  std::set<uint32_t> uncounted_;
  std::multiset<uint32_t> arriving_;
  std::string database_;  // "" = not known yet
  // Held while RocksDB is asked, so never taken by a thread that holds RocksDB's mutex.
  std::mutex handles_mutex_;
  rocksdb::DB* db_ = nullptr;
  std::multimap<uint32_t, rocksdb::ColumnFamilyHandle*> handles_;
  std::mutex waking_;
  std::function<void()> wake_;
};

void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::DBOptions* options);
void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::ColumnFamilyOptions* options);

}  // namespace tamis::lsm
