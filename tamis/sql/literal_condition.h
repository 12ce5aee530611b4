// LiteralCondition: a WHERE clause that compares columns with literals, as a predicate that is true
// of exactly the rows of which SQLite says so.
//
//   size > 5 AND (section = 'libs' OR section IN ('net', 'web')) AND at NOT BETWEEN 'a' AND 'b'
//   price >= 0.25 AND note IS NOT NULL
//
// Comparisons, BETWEEN, IN and IS NULL, joined by AND and OR. Columns of numbers compare with
// numbers, text and timestamp columns with texts: SQLite converts other pairs first.
//
// Threads: a pure function.
#pragma once

#include "tamis/base/status.h"
#include "tamis/sql/select_statement.h"
#include "tamis/table/predicate.h"

namespace tamis {

// True for a statement without WHERE. kInvalidArgument: the clause has something else, which the
// message names. REQUIRES: the statement is plain, and the schema that of its table.
Result<Predicate> LiteralCondition(const SelectStatement& statement, const TableSchema& schema);

}  // namespace tamis
