// RewriteLower: comparisons of lower(c) as comparisons of the column that is computed as lower(c).
//
// SQLite offers a virtual table no comparison of an expression. Where a program sees the text of a
// statement, and the table has a column that is lower() of another one, the two are the same value:
// lower() of SQLite and of computed columns both put a-z for A-Z and keep all other bytes. Other
// functions of computed columns differ from SQLite's of the same name for some texts or times, and
// are left alone.
//
// A statement is changed only where the meaning of each name is certain: one SELECT without
// subqueries whose FROM names tables, and comparisons with text literals in WHERE and ON.
//
// Threads: a pure function, apart from the schemas that the engine may ask the cluster for.
#pragma once

#include <optional>
#include <string>

#include "tamis/query/engine.h"
#include "tamis/sql/select_statement.h"

namespace tamis {

// The statement to run instead, whose answer is the same. nullopt: there is nothing to change.
// REQUIRES: the names of tables mean the engine's to SQLite, and lower() is SQLite's own. A table
// that was opened before the column was added does not have it: preparing may fail then, and the
// statement as it was is to be run.
std::optional<std::string> RewriteLower(const SelectStatement& statement, Engine* engine);

}  // namespace tamis
