// StatementCache: prepared statements of one SQLite connection that have ended, for the next
// request with the same text. A statement is taken out while it is in use.
//
// A plan is as old as its statement: it may not know an index that was made since, and its
// estimates may have changed. So a statement is kept for a few seconds only, and only while the
// tables that the connection knew have the schema versions that they had when it was prepared.
//
// Threads: as the connection, one at a time.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/executor.h"

namespace tamis::server {

// The id of a table and the version of its schema.
using TableVersion = std::pair<uint32_t, uint64_t>;

class StatementCache {
 public:
  static constexpr size_t kMostStatements = 4;
  static constexpr int kMostBytes = 64 << 10;  // memory of SQLite for a statement
  static constexpr Duration kMostAge = std::chrono::seconds(5);

  struct Statement {
    sqlite3_stmt* handle = nullptr;
    std::string sql;
    std::map<std::string, TableVersion>
        tables;                        // by their names, as they were when it was prepared
    std::string aggregated_by_sqlite;  // see Session
    Time prepared{};
  };
  // The version of a table as it is now; nullopt where it is not known.
  using VersionOf = std::function<std::optional<TableVersion>(const std::string& table)>;

  StatementCache() { kept_.reserve(kMostStatements); }
  ~StatementCache() { Clear(); }
  StatementCache(const StatementCache&) = delete;
  StatementCache& operator=(const StatementCache&) = delete;

  // A statement with this text whose plan is as good as a new one; the caller owns it.
  std::optional<Statement> Take(const std::string& sql, Time now, const VersionOf& version_of);
  // Keeps a statement, which has been reset, or finalizes it.
  void Put(Statement statement);
  void Clear();
  size_t size() const { return kept_.size(); }

 private:
  std::vector<Statement> kept_;  // the one that was put last is at the end
};

}  // namespace tamis::server
