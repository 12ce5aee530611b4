#include "tamis/lsm/stored_database.h"

#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/options_util.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/sst_keys.h"

namespace tamis::lsm {
namespace {

// The names in an OPTIONS file; RocksDB's reader does not report names that it does not know.
using Names = std::map<std::string, std::string>;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// "leveldb.BytewiseComparator", "nullptr", "{id=SkipListFactory;lookahead=0;}"
std::string NameIn(std::string_view value) {
  if (value.starts_with("{")) {
    const size_t id = value.find("id=");
    if (id == value.npos) return std::string(value);
    value = value.substr(id + 3);
    value = value.substr(0, value.find_first_of(";}"));
  }
  return value == "nullptr" ? "" : std::string(value);
}

std::map<std::string, Names> NamesOfFamilies(const std::string& path) {
  std::map<std::string, Names> families;
  Names* names = nullptr;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const std::string_view line = Trimmed(text);
    if (line.starts_with("[")) {
      constexpr std::string_view kHead = "[CFOptions \"";
      const size_t end = line.rfind('"');
      const bool is_family = line.starts_with(kHead) && end != line.npos && end >= kHead.size();
      names = is_family ? &families[std::string(line.substr(kHead.size(), end - kHead.size()))]
                        : nullptr;
    } else if (const size_t sign = line.find('='); names != nullptr && sign != line.npos) {
      (*names)[std::string(line.substr(0, sign))] = NameIn(line.substr(sign + 1));
    }
  }
  return families;
}

}  // namespace

StoredDatabase::StoredDatabase(StoredDatabase&& other) noexcept
    : directory_(other.directory_),
      options_(std::move(other.options_)),
      families_(std::move(other.families_)),
      lock_(std::exchange(other.lock_, nullptr)),
      db_(std::move(other.db_)),
      base_(std::exchange(other.base_, nullptr)),
      filtered_(std::exchange(other.filtered_, nullptr)) {}

StoredDatabase::~StoredDatabase() {
  if (filtered_ != nullptr) filtered_->filter().Stop();
  if (db_ != nullptr) {
    for (const Family& family : families_) {
      if (family.handle != nullptr) (void)db_->DestroyColumnFamilyHandle(family.handle);
    }
  }
  db_.reset();
  if (lock_ != nullptr) (void)rocksdb::Env::Default()->UnlockFile(lock_);
}

Status StoredDatabase::Explain(const std::string& what, const rocksdb::Status& status) const {
  const std::string message = "cannot " + what + " \"" + directory_ + "\": " + status.ToString();
  if (status.IsNoSpace()) return {StatusCode::kResourceExhausted, message};
  if (status.IsCorruption()) {
    return DataLoss(message +
                    "; the database itself is damaged, or was written by a later RocksDB, or has "
                    "files in directories of DBOptions::db_paths or cf_paths, which its OPTIONS "
                    "file does not name: such a database cannot be opened here");
  }
  return Unavailable(message);
}

Result<StoredDatabase> StoredDatabase::Read(const std::string& directory) {
  StoredDatabase database(directory);
  if (access((directory + "/CURRENT").c_str(), F_OK) != 0) {
    return NotFound("there is no RocksDB database in \"" + directory +
                    "\": it has no file CURRENT; name the directory that DB::Open was given");
  }
  TAMIS_RETURN_IF_ERROR(database.ReadOptions());
  return database;
}

Status StoredDatabase::ReadOptions() {
  std::vector<std::string> names;
  if (const auto status = rocksdb::DB::ListColumnFamilies({}, directory_, &names); !status.ok()) {
    return Explain("list the column families of", status);
  }
  // Unknown options are those of a later RocksDB, unsupported ones are objects of another program.
  rocksdb::ConfigOptions how;
  how.ignore_unknown_options = true;
  how.ignore_unsupported_options = true;
  std::vector<rocksdb::ColumnFamilyDescriptor> stored;
  std::map<std::string, Names> named;
  const auto status = rocksdb::LoadLatestOptions(how, directory_, &options_, &stored);
  if (!status.ok() && !status.IsNotFound()) return Explain("read the OPTIONS file of", status);
  std::string file;
  if (status.ok() &&
      rocksdb::GetLatestOptionsFileName(directory_, rocksdb::Env::Default(), &file).ok()) {
    named = NamesOfFamilies(directory_ + "/" + file);
  }
  // Opens nothing and makes nothing besides what reading needs.
  options_.create_if_missing = false;
  options_.statistics = nullptr;
  options_.persist_stats_to_disk = false;
  options_.stats_dump_period_sec = 0;
  options_.skip_stats_update_on_db_open = true;
  for (const std::string& name : names) {
    Family family{.name = name};
    const auto at = std::ranges::find_if(stored, [&](const auto& one) { return one.name == name; });
    if (at != stored.end()) family.options = at->options;
    Names& of = named[name];
    const rocksdb::Comparator* const comparator = family.options.comparator;
    family.comparator = of["comparator"].empty() ? comparator->Name() : of["comparator"];
    family.memtable = of["memtable_factory"].empty() ? family.options.memtable_factory->Name()
                                                     : of["memtable_factory"];
    family.merge_operator = of["merge_operator"];
    if (family.merge_operator.empty() && family.options.merge_operator != nullptr) {
      family.merge_operator = family.options.merge_operator->Name();
    }
    family.is_merge_known =
        family.merge_operator.empty() || family.options.merge_operator != nullptr;
    if (!family.is_merge_known || family.options.merge_operator == nullptr) {
      family.options.merge_operator = MakeAnyMerge();
    }
    family.is_comparator_known = family.comparator == comparator->Name();
    if (!family.is_comparator_known || comparator != rocksdb::BytewiseComparator()) {
      family.bypass_reasons |= kComparator;
    }
    if (family.is_comparator_known && comparator->timestamp_size() > 0) {
      family.bypass_reasons |= kTimestamps;
    }
    if (family.memtable != rocksdb::SkipListFactory::kClassName() &&
        family.memtable != rocksdb::SkipListFactory::kNickName()) {
      family.bypass_reasons |= kMemtables;
    }
    families_.push_back(std::move(family));
  }
  return Status::Ok();
}

std::optional<int> StoredDatabase::OpenedBy() const {
  // Closing the file would also release this process's own lock of it.
  if (lock_ != nullptr) return std::nullopt;
  const int file = open((directory_ + "/LOCK").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool is_told = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(file);
  return is_told ? std::optional<int>(lock.l_pid) : std::nullopt;
}

Status StoredDatabase::Lock() {
  const auto in_use = [&](int process) {
    return FailedPrecondition("database \"" + directory_ + "\" is open in process " +
                              std::to_string(process) +
                              "; close it there first, or use a checkpoint of it");
  };
  if (const auto process = OpenedBy()) return in_use(*process);
  const auto status = rocksdb::Env::Default()->LockFile(directory_ + "/LOCK", &lock_);
  if (status.ok()) return Status::Ok();
  if (const auto process = OpenedBy()) return in_use(*process);
  return Explain("lock the database", status);
}

void StoredDatabase::FindUnreadable() {
  const std::string block_based = rocksdb::TableFactory::kBlockBasedTableName();
  for (Family& family : families_) {
    if (family.handle == nullptr || family.options.table_factory->Name() == block_based) continue;
    rocksdb::ColumnFamilyMetaData metadata;
    base_->GetColumnFamilyMetaData(family.handle, &metadata);
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      for (const rocksdb::SstFileMetaData& file : level.files) {
        if (!ReadSstHead(base_->GetEnv(), file.db_path + file.name).ok()) {
          family.bypass_reasons |= kUnreadable;
        }
      }
    }
  }
}

Status StoredDatabase::Open(uint64_t cache_bytes, std::shared_ptr<DatabaseFilter> filter) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> opened;
  for (const Family& family : families_) {
    if (!family.is_comparator_known) {
      if (family.name != rocksdb::kDefaultColumnFamilyName) continue;
      return FailedPrecondition(
          "cannot open the database \"" + directory_ +
          "\": its default column family is ordered by comparator \"" + family.comparator +
          "\", which RocksDB itself does not have; the program that has it can open the database "
          "with a filter, but lookups in that family would pass through");
    }
    opened.emplace_back(family.name, family.options);
    if (auto* table = family.options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>()) {
      rocksdb::BlockBasedTableOptions cached = *table;
      if (!cached.no_block_cache) cached.block_cache = cache;
      opened.back().options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(cached));
    }
  }
  rocksdb::DBOptions options = options_;
  if (filter != nullptr) filter->Attach(&options, &opened);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const auto status = OpenDatabaseForReadOnly(&db_, options, directory_, opened, &handles);
  if (!status.ok()) return Explain("open the database", status);
  base_ = db_.get();
  size_t next = 0;
  for (Family& family : families_) {
    if (family.is_comparator_known) family.handle = handles[next++];
  }
  if (filter != nullptr) {
    auto filtered = std::make_unique<FilteredDB>(db_.release(), std::move(filter), handles);
    filtered_ = filtered.get();
    db_ = std::move(filtered);
  }
  FindUnreadable();
  return Status::Ok();
}

}  // namespace tamis::lsm
