// RewriteMinimum: SELECT min(a) FROM t as a query for the first row in the order of an index.
//
// SQLite asks a virtual table for an order for max(a), but for none for min(a) of a column that may
// be NULL: all values would be read. Where a program sees the text of a statement, it can ask for
// the same value in a way that has an order.
//
// Threads: a pure function, apart from the schema that the engine may ask the cluster for.
#pragma once

#include <optional>
#include <string>

#include "tamis/query/engine.h"
#include "tamis/sql/select_statement.h"

namespace tamis {

// The statement to run instead, whose answer is the same, with a column of the same name and type.
// nullopt: the statement is another one, or no index gives the order of the column. REQUIRES: the
// name of the table means the engine's to SQLite.
std::optional<std::string> RewriteMinimum(const SelectStatement& statement, Engine* engine);

}  // namespace tamis
