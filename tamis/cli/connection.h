// Connection: an SQLite connection in memory whose tables are those of a store.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tamis/cli/command.h"
#include "tamis/query/explain.h"
#include "tamis/sql/session.h"
#include "tamis/store/opened_store.h"

namespace tamis {

// Receives the rows of a statement.
struct RowSink {
  std::function<void(const std::vector<std::string>& columns)> begin;
  std::function<void(sqlite3_stmt* row)> row;
  std::function<void()> end;
};

// The store options that stand before the command on the command line.
OpenedStore::Options StoreOptionsOf(const Invocation& invocation, bool create);

class Connection {
 public:
  // Opens the store that the command line names.
  static Result<std::unique_ptr<Connection>> Open(const Invocation& invocation, bool create = true);
  // For a store that is not there: SQL without tables, until MakeStore.
  static Result<std::unique_ptr<Connection>> OpenWithoutStore(const Invocation& invocation);
  ~Connection();

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  sqlite3* db() const { return db_; }
  const std::string& store_name() const { return store_ ? store_->name() : invocation_.store; }
  // kNotFound without a store. Without one, engine() and admin() must not be called.
  Status CheckStore() const;
  Status MakeStore();
  Engine& engine() { return store_->engine(); }
  ClusterAdmin& admin() { return store_->admin(); }
  const std::shared_ptr<Session>& session() const { return session_; }

  // Runs all statements of the text. Statements that give rows give them to the sink. When
  // `searches` is not null, the Explain of every search is added to it.
  Status Run(const std::string& sql, const RowSink& sink, std::vector<Explain>* searches = nullptr);
  // One statement with values bound to its ?s, from text or NULL.
  Status RunBound(const std::string& sql, const std::vector<Value>& values, const RowSink& sink);

  // For the end of a program: an error where writes of a transaction still wait for a COMMIT. BEGIN
  // IMMEDIATE alone counts as a write to each attached file.
  Status CheckCommitted() const;

  // Waits until the filters of all regions are known here, or the time is over: a search before
  // that asks more servers than it needs to.
  void WaitUntilRouted(Duration timeout);

  // Rows that the last INSERT, UPDATE or DELETE changed.
  int64_t changes() const { return sqlite3_changes64(db_); }

  // The statement to run in the place of the first one of the text, which is taken from it
  // (rewritten_query.h). nullopt: it is run as it is, and still stands in the text.
  std::optional<std::string> RewriteFirst(const char** text) const;

 private:
  explicit Connection(const Invocation& invocation);
  Status OpenStore(bool create);
  Status OpenDatabase();
  Status Step(sqlite3_stmt* statement, const RowSink& sink);
  bool HasTablesOfItsOwn() const;
  static bool MayBeRewritten(const std::string& statement);
  bool IsRolledBack(const char* statement, const Status& status) const;
  Status LastError(int rc) const;
  // Returns the text to append to SQLite's `message`; empty unless the cluster hides tables from
  // this user.
  std::string WhyUnknownTable(const std::string& message) const;

  const Invocation invocation_;
  std::shared_ptr<OpenedStore> store_;  // null: there is none
  std::shared_ptr<Session> session_;
  sqlite3* db_ = nullptr;
};

// Makes `sub` run the command on the store that the command line names, which must exist unless it
// is to be made.
void OnStore(Command sub, Invocation* invocation, std::function<Status(Connection*)> command,
             bool create = false);

}  // namespace tamis
