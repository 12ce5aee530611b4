// Names of tables and columns, and types of columns, as SQL text. It needs no SQLite.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "tamis/table/schema.h"

namespace tamis {

// The name in double quotes, each of its own doubled.
std::string QuotedName(std::string_view name);

// The declared type of a column, chosen so that SQLite's own comparisons use the right affinity.
std::string_view SqlType(Type type);

}  // namespace tamis
