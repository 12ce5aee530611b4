#include "tamis/rocks/store.h"

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <sys/stat.h>

#include <mutex>

#include "tamis/base/coding.h"
#include "tamis/rocks/store_directory.h"
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

// RocksDB's own attempts to go on after a full disk take seconds, in which it refuses ours.
class NoOwnRecovery : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* recovers) override {
    *recovers = false;
  }
};

}  // namespace

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
  if (status.IsIOError() && (says("Permission denied") || says("Read-only file system"))) {
    return FailedPrecondition(what +
                              "; a store is opened for reading and writing: ask for the "
                              "right to, or copy it");
  }
  if (status.IsNotFound()) return NotFound(what);
  if (status.IsInvalidArgument() && says("does not exist")) return NotFound(what);
  return Internal(what);
}

Result<std::unique_ptr<Store>> Store::Open(const Options& options) {
  std::unique_ptr<Store> store(new Store);
  store->options_ = options;
  store->garbage_ = std::make_shared<GarbageFilterFactory>();

  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.block_cache = rocksdb::NewLRUCache(options.cache_bytes);
  rocksdb::Options db_options;
  db_options.create_if_missing = options.create;
  db_options.create_missing_column_families = true;
  db_options.max_open_files = 512;
  db_options.listeners.push_back(std::make_shared<NoOwnRecovery>());
  db_options.max_total_wal_size = 4 * options.memtable_bytes;
  // What was acknowledged stands in the log as far as the operating system, so only its very end
  // can be torn, by a process that was killed while it wrote. Damage before that is not passed
  // over: acknowledged rows would be gone without a word.
  db_options.wal_recovery_mode = options.salvage
                                     ? rocksdb::WALRecoveryMode::kPointInTimeRecovery
                                     : rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  if (options.env != nullptr) {
    db_options.env = options.env;
  } else {
    TAMIS_RETURN_IF_ERROR(CheckStoreDirectory(options.directory, options.create, db_options));
    db_options.info_log = std::make_shared<StoreLog>(options.directory);
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
    return store;
  }
  const Status failure = FromRocks(status, "open store \"" + options.directory + "\"");
  if (failure.code() != StatusCode::kDataLoss || options.salvage) return failure;
  return DataLoss(failure.message() +
                  ". The file LOG there says which. If it is a *.log, tamis --salvage opens the "
                  "store without what was written after the damage");
}

Store::~Store() {
  compactor_.reset();
  writers_.reset();
  if (!db_) return;
  for (auto* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  db_->Close();
}

// After a full disk RocksDB refuses all writes until it is told to go on.
void Store::GoOn() {
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  stalled_ = !db_->Resume().ok();
  if (stalled_) return;
  // The log that a write has failed on takes no other: RocksDB aborts. It goes over to another one
  // when it resumes, if there is anything to flush: should the disk be full again at once, this.
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  rocksdb::WriteBatch nothing;
  nothing.Delete(meta(), "there is no such key");
  (void)writers_->Write(unlogged, &nothing);
}

Status Store::Write(rocksdb::WriteBatch* batch, bool sync) {
  rocksdb::WriteOptions write_options;
  write_options.sync = sync;
  for (bool again = false;; again = true) {
    const rocksdb::Status written = writers_->Write(write_options, batch);
    if (written.ok()) return Status::Ok();
    const Status status = FromRocks(written, "write to store \"" + options_.directory + "\"");
    const bool full = status.code() == StatusCode::kResourceExhausted;
    // Where somebody else has met the full disk, RocksDB says no more of the log than that.
    const bool broken = written.ToString().find("Seen error") != std::string::npos;
    if (again || (!full && !broken)) return status;
    // There may be room by now. The same batch twice is the same as once.
    stalled_ = true;
    GoOn();
    if (stalled_) return status;
  }
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
