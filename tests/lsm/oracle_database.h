// OracleDatabase: the database of one life with its filter, opened as its config says.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/utilities/transaction_db.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/tree_filter.h"
#include "tests/lsm/faulty_file_system.h"
#include "tests/lsm/oracle_config.h"
#include "tests/lsm/oracle_counts.h"

namespace tamis::lsm {

struct OracleDatabase {
  static constexpr uint32_t kKeys = 4000;
  static constexpr int kWriters = 2;
  // 'k', 12: "k00012".
  static std::string Numbered(char kind, uint64_t number);

  OracleDatabase(const OracleConfig& config, uint64_t life, OracleCounts* counts);
  ~OracleDatabase() { Close(); }
  OracleDatabase(const OracleDatabase&) = delete;
  OracleDatabase& operator=(const OracleDatabase&) = delete;

  // False: it cannot be opened, which is said on stderr. `between_questions`: see faults.h.
  bool Open(std::function<void()> between_questions);

  const OracleConfig config;
  const uint64_t seed;  // of this life
  OracleCounts& counts;
  const std::string path;
  const std::string keys_path;
  const bool drops_files;  // so that a key may be gone although nobody has deleted it
  Random random;           // of who disturbs
  std::shared_ptr<FaultyFileSystem> disk;
  std::unique_ptr<rocksdb::Env> env;
  rocksdb::Options options;
  std::shared_ptr<DatabaseFilter> filter;
  std::unique_ptr<FilteredDB> db;
  rocksdb::DB* base = nullptr;
  rocksdb::TransactionDB* transactions = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> fixed;
  std::vector<rocksdb::ColumnFamilyHandle*> temporary;  // of who disturbs
  std::atomic<uint64_t> next_name{0};

 private:
  rocksdb::Options MakeOptions();
  void Close();
};

}  // namespace tamis::lsm
