// Rows of SQLite as JSON arrays.
//
// Integers and finite reals are numbers; a real has the fewest digits that give the same double,
// and an infinite one is the text "Inf" or "-Inf". Bytes are text, "0x" and hexadecimal digits.
// Text that is not UTF-8 has U+FFFD instead of the bytes that are not.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tamis::server {

// Appends the text in quotes. Returns whether it was UTF-8.
bool AppendJsonText(std::string_view text, std::string* out);
// Appends the row that the statement stands on. Returns the number of texts that were not UTF-8.
uint64_t AppendJsonRow(sqlite3_stmt* row, std::string* out);
// Appends "columns": the names, and "types": the declared types, null for other expressions.
void AppendJsonHeader(sqlite3_stmt* statement, std::string* out);

}  // namespace tamis::server
