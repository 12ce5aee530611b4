// Names of tables and columns, and types of columns, as SQL text. It needs no SQLite.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/table/schema.h"

namespace tamis {

// The name in double quotes, each of its own doubled.
std::string QuotedName(std::string_view name);
// A regular expression for a name as a statement writes it: a word, or in double quotes.
inline constexpr char kNamePattern[] = R"re((\w+|"(?:[^"]|"")+"))re";
// The name that is written so.
std::string UnquotedName(std::string_view written);

// The position of the column that SQLite means by the name: letters of ASCII in any case.
std::optional<uint32_t> FindColumnInAnyCase(const TableSchema& schema, std::string_view name);

// The declared type of a column, chosen so that SQLite's own comparisons use the right affinity.
std::string_view SqlType(Type type);

}  // namespace tamis
