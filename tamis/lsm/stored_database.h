// StoredDatabase: a RocksDB that some other program has written, read as its own OPTIONS file says.
//
// It is opened read-only, so that nothing in its directory changes but LOCK, and, where that is
// asked for, our key files. Parts of the other program that are unknown here are reported if they
// matter: a merge operator does not (only keys are read), a comparator does (its family cannot be
// opened).
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/tree_filter.h"

namespace tamis::lsm {

class StoredDatabase {
 public:
  struct Family {
    std::string name;
    // Names as its OPTIONS file has them.
    std::string comparator;
    std::string merge_operator;  // "" = none
    std::string memtable;
    bool is_comparator_known = true;
    bool is_merge_known = true;
    // Reasons for which the family would pass through permanently.
    BypassReasons bypass_reasons = 0;
    // Nothing when its comparator is not known, or before Open.
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    rocksdb::ColumnFamilyOptions options;
  };

  // Reads the database's own description (its OPTIONS file). kNotFound: `directory` holds no
  // database.
  static Result<StoredDatabase> Read(const std::string& directory);
  StoredDatabase(StoredDatabase&&) noexcept;
  StoredDatabase& operator=(StoredDatabase&&) = delete;
  ~StoredDatabase();

  // The id of the process that has the database open for writing; nullopt when none has, or this
  // one.
  std::optional<int> OpenedBy() const;
  // Keeps other processes from opening it for writing while this object lives. kFailedPrecondition:
  // one has it open for writing.
  Status Lock();

  // `filter`, if any, is attached before and started afterwards.
  Status Open(uint64_t cache_bytes, std::shared_ptr<DatabaseFilter> filter = nullptr);

  rocksdb::DB* db() const { return base_; }
  // With the filter, if there is one.
  FilteredDB* filtered() const { return filtered_; }
  const std::string& directory() const { return directory_; }
  std::string key_directory() const { return directory_ + "/tamis.keys"; }
  const std::vector<Family>& families() const { return families_; }

 private:
  explicit StoredDatabase(std::string directory) : directory_(std::move(directory)) {}

  Status ReadOptions();
  // Adds kUnreadable to the families that have files of a kind whose keys are not read.
  void FindUnreadable();
  Status Explain(const std::string& what, const rocksdb::Status& status) const;

  const std::string directory_;
  rocksdb::DBOptions options_;
  std::vector<Family> families_;
  rocksdb::FileLock* lock_ = nullptr;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::DB* base_ = nullptr;
  FilteredDB* filtered_ = nullptr;
};

}  // namespace tamis::lsm
