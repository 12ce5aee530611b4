// RewriteCount: SELECT count(*) FROM t as a query of tamis_aggregate.
//
// SQLite counts the rows of a virtual table itself, one step a row, although the servers have
// counted them. Where a program sees the text of a statement, it can ask for the servers' number.
//
//   SELECT count(*) FROM t
//   SELECT count(*) AS open FROM t WHERE status = 'open' AND total >= 100
//
// A condition compares, joined by AND, int64 columns with integers and text columns with texts:
// there both compare alike, whatever is in the column.
//
// Threads: a pure function, apart from the schema that the engine may ask the cluster for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tamis/query/engine.h"

namespace tamis {

// The statement to run instead, whose answer is the same, with the same column name. nullopt: the
// statement is another one. REQUIRES: the name of the table means the engine's to SQLite, and no
// transaction is open, whose waiting writes the statement would have to heed.
std::optional<std::string> RewriteCount(std::string_view sql, Engine* engine);

}  // namespace tamis
