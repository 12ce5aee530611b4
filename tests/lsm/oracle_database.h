// OracleDatabase: the database of one life with its filter, opened as its config says.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
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
  // None: the database has no transactions.
  std::unique_ptr<rocksdb::Transaction> BeginTransaction(const rocksdb::WriteOptions& write,
                                                         uint64_t flush_threshold);
  // Commits or rolls back one of those that were recovered.
  void DecideRecovered();

  const OracleConfig config;
  const uint64_t seed;  // the seed of this life
  OracleCounts& counts;
  const std::string path;
  const std::string keys_path;
  const bool drops_files;  // files are dropped: a key may be gone although no delete of it was done
  Random random;           // used by the thread that disturbs
  std::shared_ptr<FaultyFileSystem> disk;
  std::unique_ptr<rocksdb::Env> env;
  rocksdb::Options options;
  std::shared_ptr<DatabaseFilter> filter;
  std::unique_ptr<rocksdb::DB> db;  // a FilteredDB, or transactions over one
  rocksdb::DB* base = nullptr;      // without the filter
  rocksdb::TransactionDB* transactions = nullptr;
  rocksdb::OptimisticTransactionDB* optimistic = nullptr;
  // Prepared, and not decided. RocksDB locks no keys for them, so that they must be decided before
  // anything else is written.
  std::vector<std::unique_ptr<rocksdb::Transaction>> recovered;
  std::vector<rocksdb::ColumnFamilyHandle*> fixed;
  std::vector<rocksdb::ColumnFamilyHandle*> temporary;  // families of the thread that disturbs
  std::atomic<uint64_t> next_name{0};

 private:
  rocksdb::Options MakeOptions();
  std::vector<std::string> FixedNames() const;
  rocksdb::Status OpenBase(rocksdb::DBOptions db_options,
                           std::vector<rocksdb::ColumnFamilyDescriptor> families);
  void Close();
};

}  // namespace tamis::lsm
