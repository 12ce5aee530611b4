// SqlDatabase: an SQLite connection in memory whose tables are those of a store, enclosed by a
// sandbox. SqlDatabases keeps some of them for the next statement.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tamis/server/sandbox.h"
#include "tamis/server/statement_cache.h"
#include "tamis/sql/session.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

// Threads: one at a time; session()->cancelled may be set by any, and Interrupt called.
class SqlDatabase {
 public:
  static Result<std::unique_ptr<SqlDatabase>> Open(const std::shared_ptr<OpenedStore>& store,
                                                   bool may_write);
  ~SqlDatabase();
  SqlDatabase(const SqlDatabase&) = delete;
  SqlDatabase& operator=(const SqlDatabase&) = delete;

  sqlite3* db() const { return db_; }
  const std::shared_ptr<Session>& session() const { return session_; }

  // The statement; null for a text without one. kInvalidArgument for more than one statement, and
  // for what the sandbox refuses. It is ended by End, before the next one is prepared.
  Result<sqlite3_stmt*> Prepare(const std::string& sql);
  // Ends the statement, and with it its searches; returns the result code of its last step. With
  // `keep` it may be kept for the next request with the same text.
  int End(bool keep);
  // Statements that are kept.
  size_t kept_statements() const { return statements_.size(); }
  // Binds the values of a JSON array to the statement's parameters.
  Status Bind(sqlite3_stmt* statement, const nlohmann::json& values);
  // Whether the tables of the store that it has are as they were declared. Columns that were added
  // since are missing in `SELECT *`.
  bool IsCurrent() const;
  // The error of a call that returned `rc`.
  Status ErrorOf(int rc);
  // Ends the statement that runs, also while it waits for a region server.
  void Interrupt();

 private:
  explicit SqlDatabase(bool may_write) : sandbox_(may_write) {}

  Result<sqlite3_stmt*> PrepareAnew(const std::string& sql);
  std::optional<TableVersion> VersionOf(const std::string& table) const;
  std::map<std::string, TableVersion> Versions() const;

  Sandbox sandbox_;
  std::shared_ptr<Session> session_ = std::make_shared<Session>();
  sqlite3* db_ = nullptr;
  StatementCache statements_;
  // The statement that runs, and whether another request may run it again.
  StatementCache::Statement present_;
  bool can_be_kept_ = false;
};

// Threads: safe.
class SqlDatabases {
 public:
  SqlDatabases(std::shared_ptr<OpenedStore> store, bool may_write, size_t kept)
      : store_(std::move(store)), may_write_(may_write), kept_(kept) {}

  const std::shared_ptr<OpenedStore>& store() const { return store_; }
  // One that is free, or a new one. A new one knows the tables as they are now; with `fresh` it is
  // a new one. A free one that is not current is dropped.
  Result<std::unique_ptr<SqlDatabase>> Take(bool fresh = false);
  void GiveBack(std::unique_ptr<SqlDatabase> database);

 private:
  const std::shared_ptr<OpenedStore> store_;
  const bool may_write_;
  const size_t kept_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SqlDatabase>> free_;
};

}  // namespace tamis::server
