#include "tamis/rocks/store.h"

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tamis/base/coding.h"
#include "tamis/base/exception_status.h"
#include "tamis/base/waits_for_memory.h"
#include "tamis/rocks/entry_file.h"
#include "tamis/rocks/overlay_file_system.h"
#include "tamis/rocks/store_log.h"

namespace tamis {
namespace {

// RocksDB counts what it has allocated, at least a block of a megabyte for a family in use.
constexpr uint64_t kFlushBytes = 8 << 20;

class GarbageFilter : public rocksdb::CompactionFilter {
 public:
  explicit GarbageFilter(std::shared_ptr<const Store::IsGarbage> is_garbage)
      : is_garbage_(std::move(is_garbage)) {}

  const char* Name() const override { return "tamis.GarbageFilter"; }
  bool Filter(int /*level*/, const rocksdb::Slice& key, const rocksdb::Slice& /*value*/,
              std::string* /*new_value*/, bool* /*value_changed*/) const override {
    return (*is_garbage_)(std::string_view(key.data(), key.size()));
  }

 private:
  const std::shared_ptr<const Store::IsGarbage> is_garbage_;
};

}  // namespace

// Reacts to errors that RocksDB meets, above all a full disk.
class Store::ErrorListener : public rocksdb::EventListener {
 public:
  explicit ErrorListener(const Store* store) : store_(*store) {}

  // Switches RocksDB's own recovery off: after a full disk it takes seconds, during which RocksDB
  // refuses our DB::Resume.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* recovers) override {
    *recovers = false;
  }

  // Called before the error stops RocksDB's work; an error that is set to ok stops nothing.
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (reason == rocksdb::BackgroundErrorReason::kCompaction && error->IsNoSpace()) {
      // The compaction has deleted its unfinished files, so no other work need stop. RocksDB tries
      // the compaction again after this pause.
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPause, [this] { return hurried_; });
      *error = rocksdb::Status::OK();
      return;
    }
    // A flush that begins between a write's error and the next GoOn finds the log as that write has
    // left it. RocksDB would take that for an unrecoverable error; it is the same error once more.
    if (reason == rocksdb::BackgroundErrorReason::kMemTable && stopped_) {
      *error = rocksdb::Status::OK();
      return;
    }
    const bool first = !stopped_.exchange(true);
    if (first && reason == rocksdb::BackgroundErrorReason::kWriteCallback) AwaitFlushes();
  }
  void Resumed() { stopped_ = false; }

  // `hurried`: no compaction pauses here, since DB::Resume or the destructor waits for all to end.
  void Hurry(bool hurried) {
    {
      std::lock_guard lock(mutex_);
      hurried_ = hurried;
    }
    changed_.notify_all();
  }

 private:
  static constexpr std::chrono::seconds kPause{1};

  // A queued flush that finds at its start that an error has stopped the work stays in RocksDB's
  // queue for ever, and DB::Resume waits for it. So this waits until no flush is queued. No other
  // can be queued meanwhile: the writer that met the error blocks the other writers.
  void AwaitFlushes() const {
    const auto wait = std::chrono::milliseconds(1);
    for (int i = 0; i < 2000 && Flushes(); ++i) std::this_thread::sleep_for(wait);
  }
  bool Flushes() const {
    const auto is = [this](rocksdb::ColumnFamilyHandle* family, const std::string& property) {
      uint64_t value = 0;
      return store_.db_->GetIntProperty(family, property, &value) && value != 0;
    };
    if (!store_.db_) return false;  // it is being opened
    using Properties = rocksdb::DB::Properties;
    return is(store_.meta(), Properties::kNumRunningFlushes) ||
           std::ranges::any_of(store_.handles_, [&](rocksdb::ColumnFamilyHandle* family) {
             return is(family, Properties::kMemTableFlushPending);
           });
  }

  const Store& store_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hurried_ = false;
};

class Store::GarbageFilterFactory : public rocksdb::CompactionFilterFactory {
 public:
  const char* Name() const override { return "tamis.GarbageFilterFactory"; }
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context& /*context*/) override {
    std::lock_guard lock(mutex_);
    if (!is_garbage_) return nullptr;
    return std::make_unique<GarbageFilter>(is_garbage_);
  }
  void Set(std::shared_ptr<const IsGarbage> is_garbage) {
    std::lock_guard lock(mutex_);
    is_garbage_ = std::move(is_garbage);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const IsGarbage> is_garbage_;
};

std::string RowPrefix(uint32_t table_id) {
  std::string key;
  PutBig32(&key, table_id);
  return key;
}

std::string RowStoreKey(uint32_t table_id, std::string_view row_key) {
  std::string key = RowPrefix(table_id);
  key.append(row_key);
  return key;
}

std::string RegionIndexPrefix(uint64_t region_id) {
  std::string key;
  PutBig64(&key, region_id);
  return key;
}

std::string IndexPrefix(uint64_t region_id, uint32_t index_id) {
  std::string key = RegionIndexPrefix(region_id);
  PutBig32(&key, index_id);
  return key;
}

Status FromRocks(const rocksdb::Status& status, const std::string& doing) {
  if (status.ok()) return Status::Ok();
  const std::string text = status.ToString();
  const std::string what = "cannot " + doing + ": " + text;
  const auto says = [&text](const char* words) { return text.find(words) != std::string::npos; };
  if (status.IsNoSpace() || says("No space left on device") || says("Disk quota exceeded")) {
    return ResourceExhausted(what + "; the disk is full: make room, then do it again");
  }
  if (status.IsCorruption() || (status.IsIOError() && says("No such file or directory"))) {
    return DataLoss(what + "; files of the store are damaged: restore them from a backup");
  }
  if (status.IsIOError() &&
      (says("/LOCK: Resource temporarily unavailable") || says("lock hold by current process"))) {
    return FailedPrecondition("cannot " + doing +
                              ": another process has the store open; end it, or use another store");
  }
  if (status.IsIOError() && says("Permission denied") &&
      (says("for sequentially reading") || says("for random read"))) {
    return FailedPrecondition(what + "; get the right to read it");
  }
  if (status.IsIOError() && (says("Permission denied") || says("Read-only file system"))) {
    return FailedPrecondition(what +
                              "; get the right to write there, or open the store for reading only: "
                              "--read-only, or rocks:DIRECTORY?mode=ro");
  }
  if (status.IsNotFound()) return NotFound(what);
  if (status.IsInvalidArgument() && says("does not exist")) return NotFound(what);
  return Internal(what);
}

Result<std::unique_ptr<Store>> Store::Open(const Options& options) {
  std::unique_ptr<Store> store(new Store);
  store->options_ = options;
  if (options.read_only) {
    store->options_.create = false;
    store->options_.background_compactions = false;
  }
  return OpenInto(std::move(store));
}

Result<std::unique_ptr<Store>> Store::OpenInto(std::unique_ptr<Store> store) {
  const Options& options = store->options_;
  store->garbage_ = std::make_shared<GarbageFilterFactory>();

  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.block_cache = rocksdb::NewLRUCache(options.cache_bytes);
  rocksdb::Options db_options;
  db_options.create_if_missing = options.create;
  db_options.create_missing_column_families = true;
  db_options.max_open_files = 512;
  // With more it starts threads for the few files that it reads first, and ends the process where
  // none can be started.
  db_options.max_file_opening_threads = 1;
  store->errors_ = std::make_shared<ErrorListener>(store.get());
  db_options.listeners.push_back(store->errors_);
  db_options.max_total_wal_size = 4 * options.memtable_bytes;
  // An acknowledged write is in the log as far as the operating system, so only the very end of the
  // log can be torn, by a process that was killed while it wrote. Damage before that is an error:
  // skipping it would lose acknowledged rows silently.
  db_options.wal_recovery_mode = options.salvage
                                     ? rocksdb::WALRecoveryMode::kPointInTimeRecovery
                                     : rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // All data is in the log. Closing would flush after `LeaveTheLog`, and Debian's RocksDB fails an
  // assertion where a memtable is switched again after a failure of the disk.
  db_options.avoid_flush_during_shutdown = true;
  rocksdb::Env* env = options.env != nullptr ? options.env : rocksdb::Env::Default();
  if (options.read_only) {
    store->overlay_ = rocksdb::NewCompositeEnv(std::make_shared<OverlayFileSystem>(env));
    env = store->overlay_.get();
  }
  store->env_ = std::make_unique<PatientEnv>(env);
  db_options.env = store->env_.get();
  if (options.env == nullptr) {
    TAMIS_ASSIGN_OR_RETURN(store->use_, DirectoryUse::Begin(options.directory, options.read_only));
    TAMIS_RETURN_IF_ERROR(CheckStoreDirectory(options.directory, options.create, db_options));
  }
  if (options.env == nullptr || options.read_only) {
    db_options.info_log =
        std::make_shared<StoreLog>(options.read_only ? std::string() : options.directory);
  }
  rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = options.memtable_bytes;
  family.disable_auto_compactions = !options.background_compactions;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::ColumnFamilyOptions index_family = family;
  index_family.compaction_filter_factory = store->garbage_;
  rocksdb::ColumnFamilyOptions row_family = family;
  // A put of a new row looks for an old one first.
  row_family.memtable_whole_key_filtering = true;
  row_family.memtable_prefix_bloom_size_ratio = 0.02;
  rocksdb::ColumnFamilyOptions meta_family = family;
  meta_family.write_buffer_size = 4 << 20;

  const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
      {rocksdb::kDefaultColumnFamilyName, meta_family},
      {"rows", row_family},
      {"index", index_family},
      {"meta", meta_family}};
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(db_options, options.directory, families, &store->handles_, &db);
  store->db_.reset(db);
  if (status.ok()) {
    store->writers_ = std::make_unique<WriterThreads>(db, options.writers);
    store->compactor_ = std::make_unique<GarbageCompactor>(db, store->index());
    if (!options.read_only) EntryFile::DeleteLeftovers(*store);
    return store;
  }
  const Status failure = FromRocks(status, "open store \"" + options.directory + "\"");
  if (failure.code() == StatusCode::kResourceExhausted) {
    return ResourceExhausted(failure.message() +
                             "; to read only, open it with --read-only (rocks:DIRECTORY?mode=ro)");
  }
  if (failure.code() != StatusCode::kDataLoss || options.salvage) return failure;
  return DataLoss(failure.message() +
                  ". The file LOG there says which. If it is a *.log, tamis --salvage opens the "
                  "store without what was written after the damage");
}

Store::~Store() {
  if (errors_) errors_->Hurry(true);
  compactor_.reset();
  writers_.reset();
  if (!db_) return;
  for (auto* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  db_->Close();
}

// After a full disk RocksDB refuses all writes until DB::Resume.
bool Store::GoOn(uint64_t seen) {
  std::lock_guard lock(going_on_);
  if (times_gone_on_ != seen) return true;  // another writer has just done it
  errors_->Hurry(true);
  compactor_->Pause();  // it flushes, too: see AwaitFlushes
  const bool resumed = db_->Resume().ok();
  errors_->Hurry(false);
  if (!resumed) return false;
  errors_->Resumed();
  compactor_->Continue();
  ++times_gone_on_;
  LeaveTheLog();
  return true;
}

// After a write to its log has failed, RocksDB aborts when it writes to the same log again.
// DB::Resume begins a new log only if a memtable has something to flush. So this puts a deletion of
// a key that does not exist into a memtable, without the log: it is flushed should the disk be full
// again at once.
void Store::LeaveTheLog() {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::WriteBatch nothing;
  nothing.Delete(meta(), "there is no such key");
  (void)writers_->Write(unlogged, &nothing);
}

// Whether memory suffices for a write of the batch. RocksDB cannot be used after an exception in
// the middle of a write. So a write that would find no memory is refused before it begins; inside
// of RocksDB the thread waits for memory (WaitsForMemory).
bool Store::HasMemoryFor(const rocksdb::WriteBatch& batch) {
  constexpr size_t kOfRocks = 64 << 10;
  const size_t size = 4 * batch.GetDataSize() + kOfRocks;
  void* memory = ::operator new(size, std::nothrow);
  ::operator delete(memory);
  return memory != nullptr;
}

Status Store::Write(rocksdb::WriteBatch* batch, bool sync) {
  if (!HasMemoryFor(*batch)) return OutOfMemory();
  rocksdb::WriteOptions write_options;
  write_options.sync = sync;
  std::call_once(begun_, [this] { LeaveTheLog(); });
  for (bool again = false;; again = true) {
    rocksdb::Status written;
    uint64_t seen = 0;
    {
      std::shared_lock lock(going_on_);  // nothing is written to the log that is being left
      seen = times_gone_on_;
      written = writers_->Write(write_options, batch);
    }
    if (written.ok()) return Status::Ok();
    Status status = FromRocks(written, "write to store \"" + options_.directory + "\"");
    const bool full = status.code() == StatusCode::kResourceExhausted;
    // When another write has met the full disk, RocksDB reports nothing but this text.
    const bool broken = written.ToString().find("Seen error") != std::string::npos;
    if (again || (!full && !broken)) return status;
    // There may be room by now. Writing the batch twice has the same result as writing it once.
    if (!GoOn(seen)) return status;
  }
}

Status Store::TakeIn(const std::string& file) {
  if (!HasMemoryFor(rocksdb::WriteBatch())) return OutOfMemory();  // an empty batch needs no less
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.write_global_seqno = false;  // else the file is written to once more
  const WaitsForMemory waits;
  std::shared_lock lock(going_on_);
  return FromRocks(db_->IngestExternalFile(index(), {file}, options),
                   "take a file of index entries into store \"" + options_.directory + "\"");
}

Status Store::RefuseChange() const {
  if (!options_.read_only) return Status::Ok();
  return InvalidArgument("store \"" + options_.directory +
                         "\" is open for reading only; nothing was changed. Open it without "
                         "--read-only (?mode=ro)");
}

void Store::SetGarbage(std::shared_ptr<const IsGarbage> is_garbage) {
  garbage_->Set(std::move(is_garbage));
}

void Store::NoteGarbage(uint64_t region_id) { compactor_->Note(region_id); }

void Store::CompactGarbage(uint64_t regions) {
  if (options_.background_compactions) compactor_->Start(regions);
}

uint64_t Store::ApproximateRowBytes(uint32_t table_id, std::string_view start,
                                    std::string_view end) const {
  const std::string first = RowStoreKey(table_id, start);
  const std::string last = end.empty() ? RowPrefix(table_id + 1) : RowStoreKey(table_id, end);
  const rocksdb::Range range(first, last);
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  uint64_t size = 0;
  const auto status = db_->GetApproximateSizes(options, rows(), &range, 1, &size);
  return status.ok() ? size : 0;
}

void Store::FlushBeforeClosing() {
  uint64_t bytes = 0;
  if (options_.read_only) return;
  db_->GetAggregatedIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes);
  if (bytes < kFlushBytes) return;
  // A failure loses nothing: it all stands in the log.
  (void)db_->Flush(rocksdb::FlushOptions(), handles_);
}

Status Store::Compact() {
  for (auto* family : {rows(), index()}) {
    rocksdb::CompactRangeOptions compact;
    compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    const rocksdb::Status status = db_->CompactRange(compact, family, nullptr, nullptr);
    if (!status.ok()) return FromRocks(status, "compact store \"" + options_.directory + "\"");
  }
  return Status::Ok();
}

}  // namespace tamis
