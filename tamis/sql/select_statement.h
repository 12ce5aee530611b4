// SelectStatement: the clauses of a statement that is one SELECT of tables with names, without
// subqueries: what the rewriting of statements knows of their text.
//
//   SELECT section, count(*) FROM packages AS p WHERE size > 5 GROUP BY section ORDER BY 2 LIMIT 3
//
// Clauses are ranges of tokens. Only their places are known here, not whether SQLite accepts them.
//
// Threads: a value; const calls from any thread. The text outlives it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/sql/sql_tokens.h"
#include "tamis/table/schema.h"

namespace tamis {

class SelectStatement {
 public:
  struct Range {
    size_t begin = 0, end = 0;

    bool empty() const { return begin == end; }
  };
  struct Table {
    std::string table;
    std::string name;  // by which columns are qualified, in lower case
  };

  struct ResultColumn {
    Range expression;  // c, t.c or f(...)
    std::optional<std::string> alias;
    std::string span;  // the name that SQLite gives to an expression without an alias
  };

  // nullopt: the statement is another one, or the meaning of its names is not certain.
  static std::optional<SelectStatement> Parse(std::string_view sql);

  // A token, or that of kEnd behind the last one.
  const SqlToken& At(size_t i) const;
  // The characters of the tokens of the range, with what stands between them.
  std::string_view Text(Range range) const;

  // nullopt: one of them is another expression. REQUIRES: a host has handed over SQLite's
  // functions.
  std::optional<std::vector<ResultColumn>> ResultColumns() const;
  // The position of the column of the first table that the range names, as c or t.c. REQUIRES: as
  // ResultColumns.
  std::optional<uint32_t> ColumnAt(Range range, const TableSchema& schema) const;

  // Whether the token can stand only behind the end of WHERE, or between two tables.
  static bool EndsWhere(const SqlToken& token);
  static bool IsBetweenTables(const SqlToken& token);

  std::string_view sql;
  std::vector<SqlToken> tokens;
  std::vector<Table> tables;  // each with a name of its own

  Range shown;       // behind SELECT
  Range from;        // the tables, with ON and USING
  Range conditions;  // from FROM to the end of WHERE
  // Empty: there is none.
  Range where, group_by, having, order_by, limit;
  // The statement ends behind these clauses, with or without a semicolon; FROM is one table alone.
  bool is_plain = false;

 private:
  bool FindTables();
  bool TakeTable(size_t* i);
  void FindClauses();
};

// Whether SQLite, too, reads the token as a name: CURRENT_DATE, for one, is a value. REQUIRES: a
// host has handed over SQLite's functions.
bool IsSqlName(const SqlToken& token);

}  // namespace tamis
