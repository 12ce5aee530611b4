// Store: the one RocksDB that all region servers of an embedded cluster share, as HBase's servers
// share one file system. Column families (docs/FORMATS.md#store):
//
//   rows    table id (4, big-endian) | row key              -> row
//   index   region id (8) | index id (4) | values | row key -> included columns, if there are any
//   meta    see catalog.h
//   default see filter_snapshots.h
//
// Threads: safe.
#pragma once

#include <rocksdb/db.h>

#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "tamis/base/status.h"
#include "tamis/rocks/garbage_compactor.h"
#include "tamis/rocks/patient_env.h"
#include "tamis/rocks/store_directory.h"
#include "tamis/rocks/writer_threads.h"

namespace tamis {

std::string RowPrefix(uint32_t table_id);
std::string RowStoreKey(uint32_t table_id, std::string_view key);
std::string IndexPrefix(uint64_t region_id, uint32_t index_id);
std::string RegionIndexPrefix(uint64_t region_id);
inline constexpr size_t kRowPrefixSize = 4;

// A failure of RocksDB as ours: "cannot <doing>: <what RocksDB says>; <what to do>".
Status FromRocks(const rocksdb::Status& status, const std::string& doing);

class Store {
 public:
  struct Options {
    std::string directory;
    bool create = true;  // makes the store if the directory holds none
    // Nothing in the directory changes: what opening has to write stays in memory, and changes of
    // tables and rows are refused. Several processes may have a store open so at one time, and none
    // for writing. Overrides create.
    bool read_only = false;
    bool sync = false;     // each write reaches the disk before it is acknowledged
    bool salvage = false;  // opens a store with a damaged log, without the writes after the damage
    rocksdb::Env* env = nullptr;  // nullptr: the real file system
    // False: nothing is compacted but by Compact(), so that a simulation repeats exactly.
    bool background_compactions = true;
    size_t memtable_bytes = 64 << 20;
    size_t cache_bytes = 128 << 20;
    WriterThreads::Options writers;
  };
  // Whether an index entry is garbage; compactions call it on any thread.
  using IsGarbage = std::function<bool(std::string_view index_key)>;

  static Result<std::unique_ptr<Store>> Open(const Options& options);
  ~Store();

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  rocksdb::DB* db() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* filters() const { return handles_[0]; }
  rocksdb::ColumnFamilyHandle* rows() const { return handles_[1]; }
  rocksdb::ColumnFamilyHandle* index() const { return handles_[2]; }
  rocksdb::ColumnFamilyHandle* meta() const { return handles_[3]; }
  const Options& options() const { return options_; }
  // kInvalidArgument if the store is open for reading only (kFailedPrecondition would read as an
  // unmet condition of a write). Every change of tables or rows calls it before it begins. Write
  // itself works: what the cluster writes for its own use stays in memory.
  Status RefuseChange() const;

  // Ok: the batch is in the log, as far as the operating system (with sync: on the disk). After an
  // error the batch may or may not be there once the store is opened again. Any thread may call,
  // also one that ends right after (see WriterThreads).
  Status Write(rocksdb::WriteBatch* batch) { return Write(batch, options_.sync); }
  Status Write(rocksdb::WriteBatch* batch, bool sync);

  // Takes a table file of index entries into the store, on the disk, and deletes it where it was.
  // REQUIRES: nothing else writes its keys before this returns. After an error the entries may be
  // there or not.
  Status TakeIn(const std::string& file);

  // Sets what later compactions drop. A compaction takes its view at its start.
  void SetGarbage(std::shared_ptr<const IsGarbage> is_garbage);

  // Notes a region whose entries hold garbage. Nothing is compacted before CompactGarbage.
  void NoteGarbage(uint64_t region_id);
  // Begins to compact the noted regions in the background, if they are a quarter of all `regions`.
  void CompactGarbage(uint64_t regions);
  // Returns when all garbage compactions that were begun are done.
  void AwaitGarbage() { compactor_->Wait(); }

  // A rough size of the rows of the key range, in files (compressed) and memtables.
  uint64_t ApproximateRowBytes(uint32_t table_id, std::string_view start,
                               std::string_view end) const;

  // Writes what is in memory to files when it is much, so that the next opening need not read it
  // from the log.
  void FlushBeforeClosing();

  // Compacts everything, dropping garbage. Takes long.
  Status Compact();

 private:
  class ErrorListener;
  class GarbageFilterFactory;

  Store() = default;
  static Result<std::unique_ptr<Store>> OpenInto(std::unique_ptr<Store> store);  // with options_
  // Resumes RocksDB after a full disk; false when there is no room yet. `seen` is times_gone_on_ as
  // it was before the write that failed: if it has grown since, nothing is to be done.
  bool GoOn(uint64_t seen);
  void LeaveTheLog();
  static bool HasMemoryFor(const rocksdb::WriteBatch& batch);

  Options options_;
  std::unique_ptr<DirectoryUse> use_;
  std::unique_ptr<rocksdb::Env> overlay_;
  std::unique_ptr<PatientEnv> env_;
  std::shared_ptr<ErrorListener> errors_;
  std::once_flag begun_;        // the first Write
  std::shared_mutex going_on_;  // held shared by writes, exclusively by GoOn
  uint64_t times_gone_on_ = 0;  // how often RocksDB was resumed after a full disk
  std::shared_ptr<GarbageFilterFactory> garbage_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<WriterThreads> writers_;
  std::unique_ptr<GarbageCompactor> compactor_;
};

}  // namespace tamis
