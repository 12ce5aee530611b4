// One filter for all files and memtables of a stock RocksDB, attached from outside: whether a
// key may be there, for one cache line, however many sorted runs there are (docs/LSM.md).
//
//   auto filter = DatabaseFilter::Create({.directory = path + "/tamis.keys"});
//   filter->Attach(&options, &families);      // before opening, by whatever opens it
//   rocksdb::DB::Open(options, path, families, &handles, &db);
//   filter->Start(db, handles);               // counts in the background; passes through till then
//   filter->MayContain(handle, key);          // false is certain
//   filter->Stop();                           // before the database is closed
//
// FilteredDB (filtered_db.h) does all of this behind rocksdb::DB. A DatabaseFilter is for one
// opening: a second Start is refused, and from Stop on every key passes through. Other databases
// may be opened with options that it is attached to; it is the filter of the one that Start names.
// Threads: all members may be called from any thread; Attach, Start, Stop one at a time.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/lsm/ingestion.h"

namespace tamis::lsm {

class FileCounter;
class HookState;
struct Faults;  // faults.h, which is not installed
class TreeFilter;

// A filter that was started before, or with another database.
class CannotStart : public std::logic_error {
 public:
  using logic_error::logic_error;
};

class DatabaseFilter {
 public:
  struct Options {
    std::string directory;  // the directory of the key files
    double fpr = 0.003;
    // That of the database: key files go through its file system. Attached to options with another
    // one, the filter keeps no key files, since they would not lie where the database lies.
    rocksdb::Env* env = rocksdb::Env::Default();
    bool writes_files = true;  // else key files are only read, for a database that is, too
    std::shared_ptr<const Faults> faults = nullptr;  // for tests of Tamis itself
  };

  static Result<std::shared_ptr<DatabaseFilter>> Create(const Options& options);
  ~DatabaseFilter();

  // To the options of the database and those of each of its families. Where some were left out, or
  // the hooks were replaced afterwards, keys pass through (BypassReasonsOf). Also to options that
  // it is attached to already.
  void Attach(rocksdb::Options* options) const;
  void Attach(rocksdb::DBOptions* options,
              std::vector<rocksdb::ColumnFamilyDescriptor>* families) const;
  void Attach(rocksdb::ColumnFamilyOptions* options) const;

  // Begins to count the live files, on a thread of its own. Throws std::bad_alloc, or
  // std::system_error if no thread can be started; then the filter answers for no key. Throws
  // CannotStart if it was started before.
  void Start(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles);
  void Stop();
  // A family that was not among the handles passes through until it is shown, and then until its
  // files are counted.
  void Show(rocksdb::ColumnFamilyHandle* handle);

  bool MayContain(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key) const;
  // answers[i] for keys[i].
  void MayContain(rocksdb::ColumnFamilyHandle* family, std::span<const std::string_view> keys,
                  std::span<bool> answers) const;
  // Why the family passes through (every answer is "perhaps"); empty: it does not.
  std::string BypassReasonsOf(rocksdb::ColumnFamilyHandle* family) const;

  // Figures for monitoring, by name: asked, excluded, false_passes, disturbed, unreconciled, ...;
  // of all families together.
  std::map<std::string, uint64_t> Metrics() const;

  // To be called before files are ingested; the result is destroyed after. Throws std::bad_alloc
  // when memory does not suffice: then the files must not be ingested. REQUIRES: Start was called.
  std::unique_ptr<Ingestion> BeginIngestion(uint32_t family, const std::vector<std::string>& files);
  // Files have come, or may have come, into the family without being counted: it passes through
  // until they are.
  void CountLater(uint32_t family);

  // Blocks until the live files are counted.
  void WaitUntilCounted();
  // Blocks until the live files are counted and the deleted ones are reconciled (tree_filter.h).
  void WaitUntilReconciled();

  // For tests and tools: the state machine behind the filter.
  TreeFilter& tree() const { return tree_; }
  const Options& options() const { return options_; }

 private:
  DatabaseFilter(const Options& options, std::shared_ptr<HookState> hooks);

  void Watch(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles);
  void Unwatch();
  void AttachTo(rocksdb::DBOptions* options) const;

  const Options options_;
  const std::shared_ptr<HookState> hooks_;
  TreeFilter& tree_;  // theirs
  const std::unique_ptr<FileCounter> counter_;
  bool was_started_ = false;
  std::atomic<rocksdb::DB*> db_ = nullptr;  // between Start and Stop
  rocksdb::Env* env_ = nullptr;             // that of the database, from Start on
};

}  // namespace tamis::lsm
