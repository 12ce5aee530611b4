// SqlClient: writes and searches a table through SQLite, and answers as Engine does, so that a test
// can do either with the same expectations.
//
// Threads: one at a time. The first use of SQLite in the process must not be concurrent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tamis/query/engine.h"
#include "tamis/sql/session.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tamis {

// "DELETE FROM t WHERE id = 5". A put on a condition is an UPDATE of all columns.
std::string SqlOf(const TableSchema& schema, const Write& write);
// The statement for the predicate, the limit and the order; all columns.
std::string SqlOf(const TableSchema& schema, const SearchOptions& options);

// The engine's status for an error of SQLite. kInternal: SQLite must not give it.
Status ErrorOfSql(int code, const std::string& message);

class SqlClient {
 public:
  // Attaches the tables of the engine's cluster. The engine must outlive the client.
  static Result<std::unique_ptr<SqlClient>> Open(Engine* engine);
  ~SqlClient();

  SqlClient(const SqlClient&) = delete;
  SqlClient& operator=(const SqlClient&) = delete;

  // The engine's answer to the write. kInternal: SQL gave an answer that it must not give.
  Status Apply(const TableSchema& schema, const Write& write);
  Result<std::vector<Row>> Search(const TableSchema& schema, const SearchOptions& options);
  // The searches of the last statement: an OR may be several searches, each of its own moment.
  const std::vector<Explain>& searches() const { return searches_; }

 private:
  SqlClient() = default;
  // Runs the statement; an error has the code that Engine would give.
  Status Run(const TableSchema& schema, const std::string& sql, std::vector<Row>* rows);
  Status ErrorOf(int rc, const std::string& sql) const;

  std::shared_ptr<Session> session_;
  sqlite3* db_ = nullptr;
  std::vector<Explain> searches_;
};

}  // namespace tamis
