#include "tamis/rocks/store.h"

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <sys/stat.h>

#include <mutex>

#include "tamis/base/coding.h"

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
  const std::string what = "cannot " + doing + ": " + status.ToString();
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kNoSpace ||
      status.ToString().find("No space left") != std::string::npos) {
    return ResourceExhausted(what + "; the disk is full: make room, then open the store again");
  }
  if (status.IsCorruption()) {
    return DataLoss(what + "; the files of the store are damaged: restore them from a backup");
  }
  if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
    return FailedPrecondition("cannot " + doing +
                              ": another process has the store open; end it, or use another store");
  }
  if (status.IsNotFound()) return NotFound(what);
  if (status.IsInvalidArgument() && status.ToString().find("does not exist") != std::string::npos) {
    return NotFound(what);
  }
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
  db_options.keep_log_file_num = 2;
  db_options.max_total_wal_size = 4 * options.memtable_bytes;
  if (options.env != nullptr) db_options.env = options.env;
  rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = options.memtable_bytes;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::ColumnFamilyOptions index_family = family;
  index_family.compaction_filter_factory = store->garbage_;
  rocksdb::ColumnFamilyOptions meta_family = family;
  meta_family.write_buffer_size = 4 << 20;

  const std::vector<rocksdb::ColumnFamilyDescriptor> families = {
      {rocksdb::kDefaultColumnFamilyName, meta_family},
      {"rows", family},
      {"index", index_family},
      {"meta", meta_family}};
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(db_options, options.directory, families, &store->handles_, &db);
  store->db_.reset(db);
  if (!status.ok()) return FromRocks(status, "open store \"" + options.directory + "\"");
  return store;
}

Store::~Store() {
  if (!db_) return;
  for (auto* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  db_->Close();
}

Status Store::Write(rocksdb::WriteBatch* batch) {
  rocksdb::WriteOptions write_options;
  write_options.sync = options_.sync;
  return FromRocks(db_->Write(write_options, batch),
                   "write to store \"" + options_.directory + "\"");
}

void Store::SetGarbage(std::shared_ptr<const IsGarbage> is_garbage) {
  garbage_->Set(std::move(is_garbage));
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
