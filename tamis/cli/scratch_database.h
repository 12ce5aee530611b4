// ScratchDatabase: a database of SQLite in memory, in which a statement is run for the schema that
// comes of it. SQLite itself reads the statement; what it made is read here as a table or an index
// of a store.
//
// Threads: one at a time.
#pragma once

#include <sqlite3.h>

#include <optional>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/schema.h"

namespace tamis {

class ScratchDatabase {
 public:
  ScratchDatabase() { rc_ = sqlite3_open(":memory:", &db_); }
  ~ScratchDatabase() { sqlite3_close(db_); }
  ScratchDatabase(const ScratchDatabase&) = delete;
  ScratchDatabase& operator=(const ScratchDatabase&) = delete;

  Status Run(const std::string& sql);
  using Row = std::vector<std::string>;  // NULL is empty
  std::vector<Row> Rows(const std::string& sql);

  // Makes tables with the columns, and maybe the indexes, of tables of a store.
  Status Mirror(const std::vector<TableSchema>& tables, bool indexes);

  struct Definition {
    TableSchema schema;
    std::vector<std::string> problems;  // why no table of a store can have it
  };
  // The table that the statement made here.
  Definition ReadDefinition(const std::string& table, const std::string& sql);
  // The index that a statement made here.
  Result<IndexSpec> ReadIndex(const TableSchema& table, const std::string& name);

 private:
  void ReadColumns(const std::string& table, Definition* out);
  // The text behind WHERE of an index that a statement made here.
  std::string ConditionOf(const std::string& index);

  sqlite3* db_ = nullptr;
  int rc_ = SQLITE_OK;
};

// The type of a column that is declared so.
std::optional<Type> TypeOfDeclaration(const std::string& declared);
// A statement that makes as much of the table as a store can have.
std::string StatementFor(const TableSchema& schema);

}  // namespace tamis
