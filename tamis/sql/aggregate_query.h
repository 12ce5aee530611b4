// RewriteAggregates: aggregates and groups of one table as a query of tamis_grouped, for which the
// region servers count and add.
//
// SQLite takes one step for each row of a virtual table, although the servers have counted the
// rows. Where a program sees the text of a statement, it can ask for the servers' numbers:
//
//   SELECT count(*) FROM t WHERE status = 'open' AND total >= 100
//   SELECT section, count(*), avg(size) AS size FROM packages AS p WHERE size > 5
//     GROUP BY section HAVING count(*) > 10 ORDER BY size DESC LIMIT 5
//
// A statement is changed only if the results are exactly SQLite's (grouped_rows.h says where that
// turns out only when the values are known): count(*), count, min, max of columns, and sum, total
// and avg of int64 and bool columns; a condition of literal_condition.h; groups by columns; HAVING
// that compares aggregates with integers; ORDER BY of what is shown, groups and aggregates; LIMIT
// with integers. Columns of the key are not among those of groups and aggregates, since servers
// send them with the rows alone.
//
// Without ORDER BY, groups come in the order of their values. ORDER BY that leaves groups equal
// gives them in any order, as SQLite does.
//
// Threads: a pure function, apart from the schema that the engine may ask the cluster for.
#pragma once

#include <string>

#include "tamis/base/status.h"
#include "tamis/query/engine.h"
#include "tamis/sql/select_statement.h"

namespace tamis {

// Whether the text of a statement calls one of the aggregates that can be rewritten.
bool CallsAggregate(const std::vector<SqlToken>& tokens);

// The statement to run instead, whose answer is the same, with the same names and declared types of
// columns. kInvalidArgument: the statement stays as it is, for the reason that the message gives.
// REQUIRES: the name of the table means the engine's to SQLite, aggregates are SQLite's own, and no
// transaction is open, whose waiting writes the statement would have to heed.
Result<std::string> RewriteAggregates(const SelectStatement& statement, Engine* engine);

}  // namespace tamis
