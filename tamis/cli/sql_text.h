// The text of SQL statements, as far as it is looked at before SQLite does: words, names, where a
// statement ends.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tamis {

std::string UpperCase(std::string_view text);
std::string LowerCase(std::string_view text);
// The words of the text in capitals, without what is quoted or in a comment; at most so many.
std::vector<std::string> SqlWords(std::string_view text, size_t most);
// Whether the table that the statement creates has a schema name before its own, as main.t has.
bool HasSchemaName(std::string_view create_table);
bool HasSqlWord(const std::string& sql, const char* word);
// The first statement with its semicolon, or all of the text.
std::string_view FirstStatement(const char* sql);

}  // namespace tamis
