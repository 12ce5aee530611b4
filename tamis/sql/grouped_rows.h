// The rows of the table function tamis_grouped, which RewriteAggregates puts in the place of a
// table: groups with the aggregates that SQLite would give, made of what the region servers have
// added up.
//
//   SELECT tamis_grouped.g1_text AS section, tamis_grouped.a1 AS "sum(size)" FROM
//     tamis_grouped('t', 'section', 'sum(size)', 'size > 5',
//                   'SELECT section, sum(size) FROM t WHERE size > 5 GROUP BY section')
//
// The arguments are the table, the columns of the groups, the aggregates, the condition of the rows
// that count (condition.h), and the statement that gives the same rows by SQLite's own aggregates.
// SQLite adds int64 values one by one, and an average in doubles. Where that may end in another
// result than the exact total, in an overflow or a rounded number, and where there are too many
// groups, the statement is run and gives the rows.
//
// A value of a group is in the column of its type, so that the column has the declared type of the
// table's.
//
// Threads: as the session.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/sql/session.h"
#include "tamis/sql/sqlite.h"
#include "tamis/table/row.h"

namespace tamis {

// An aggregate of a statement.
struct SqlAggregate {
  enum class Function { kCountRows, kCount, kSum, kTotal, kAvg, kMin, kMax };
  Function function = Function::kCountRows;
  uint32_t column = 0;  // its position; kCountRows has none

  friend bool operator==(const SqlAggregate&, const SqlAggregate&) = default;

  // "sum(size)"
  std::string ToString(const TableSchema& schema) const;
  static std::optional<Function> FunctionOf(std::string_view name);
  // Why the result for the column may not be SQLite's; null: it is, as far as can be said before
  // the values are known.
  static const char* WhyNot(Function function, Type type);
};

struct GroupedLimits {
  static constexpr size_t kGroupColumns = 4;
  static constexpr size_t kAggregates = 8;
  // SQLite sorts more on its own, in a file if need be.
  static constexpr size_t kGroups = 65'536;
};

// A list of columns, written as in CREATE TABLE.
std::string GroupedColumns();
// The place of a column's value in a row of so many values.
size_t GroupedPlace(size_t column, size_t row_size);
// The names of the columns that have the nth value of a group, and the nth aggregate, from 0.
std::string GroupColumnName(size_t n, Type type);
std::string AggregateColumnName(size_t n);

// The groups in the order of their values; with no columns of groups, one row.
Result<std::vector<Row>> GroupedRows(sqlite3* db, Session* session,
                                     const std::vector<std::string>& arguments);

}  // namespace tamis
