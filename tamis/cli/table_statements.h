// TableStatements: CREATE TABLE, CREATE INDEX, DROP TABLE and DROP INDEX of `tamis sql`, carried
// out on the tables of the store. ALTER TABLE of one of them is refused with the command to use.
//
// SQLite would make a table in the memory of the process, and it would end with it. So does a view,
// a trigger or another module's table: these are refused. TEMP tables, views and triggers are
// SQLite's own, and so is what an attached database file holds.
//
//   CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT NOT NULL)
//       a table of the store: the primary key is its key, the types become the store's
//   CREATE INDEX body ON notes(body)
//       an index of it
//
// SQLite itself reads the statement: it is run in a database apart, and the schema that came of it
// is looked at. A part that a table of a store cannot have (DEFAULT, CHECK, UNIQUE, no primary key,
// ...) is an error that says how to write the statement.
//
// Threads: as the connection, one at a time.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/sql/session.h"

namespace tamis {

class TableStatements {
 public:
  TableStatements(sqlite3* db, std::shared_ptr<Session> session)
      : db_(db), session_(std::move(session)) {}

  // Whether a statement of the text is CREATE TABLE or CREATE VIRTUAL TABLE, but no temporary one.
  static bool MakesTable(const std::string& sql);

  // Carries out the first statement of the text when it is one of these, and returns what stands
  // behind it. nullopt: it is another one, and nothing was done.
  Result<std::optional<const char*>> Run(const char* sql);

 private:
  Status CreateTable(const std::string& sql);
  Status RefuseToAlter(const std::string& sql);
  Status CreateIndex(const std::string& sql, bool* done);
  Status DropTable(const std::string& name, const std::string& sql);
  Status DropIndex(const std::string& sql, bool* done);
  Status Execute(const std::string& sql);
  bool IsFree(const std::string& name) const;  // among temporary tables and views
  bool IsInTransaction() const { return sqlite3_get_autocommit(db_) == 0; }

  sqlite3* const db_;
  const std::shared_ptr<Session> session_;
};

}  // namespace tamis
