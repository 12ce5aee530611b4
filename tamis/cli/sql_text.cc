#include "tamis/cli/sql_text.h"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>

namespace tamis {
namespace {

// Whether the text began with a comment, or with something in quotes or brackets, and was skipped.
bool SkipQuoted(std::string_view* text) {
  const auto skip_behind = [&](std::string_view end, size_t from) {
    const size_t at = text->find(end, from);
    text->remove_prefix(at == std::string_view::npos ? text->size() : at + end.size());
    return true;
  };
  if (text->starts_with("--")) return skip_behind("\n", 2);
  if (text->starts_with("/*")) return skip_behind("*/", 2);
  const char c = (*text)[0];
  if (c == '\'' || c == '"' || c == '`') return skip_behind(text->substr(0, 1), 1);
  return c == '[' && skip_behind("]", 1);
}

}  // namespace

std::string UpperCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::vector<std::string> SqlWords(std::string_view text, size_t most) {
  std::vector<std::string> words;
  while (!text.empty() && words.size() < most) {
    const auto c = static_cast<unsigned char>(text[0]);
    if (SkipQuoted(&text)) continue;
    if (std::isalpha(c) != 0 || c == '_') {
      size_t size = 1;
      while (size < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[size])) != 0 || text[size] == '_')) {
        ++size;
      }
      words.push_back(UpperCase(text.substr(0, size)));
      text.remove_prefix(size);
    } else {
      text.remove_prefix(1);
    }
  }
  return words;
}

bool HasSchemaName(std::string_view create_table) {
  while (!create_table.empty() && create_table[0] != '(') {
    if (SkipQuoted(&create_table)) continue;
    if (create_table[0] == '.') return true;
    create_table.remove_prefix(1);
  }
  return false;
}

bool HasSqlWord(const std::string& sql, const char* word) {
  const auto words = SqlWords(sql, sql.size());
  return std::ranges::find(words, word) != words.end();
}

std::string_view FirstStatement(const char* sql) {
  const std::string_view text = sql;
  for (size_t at = text.find(';'); at != std::string_view::npos; at = text.find(';', at + 1)) {
    const std::string_view statement = text.substr(0, at + 1);
    if (sqlite3_complete(std::string(statement).c_str()) == 0) continue;
    if (!SqlWords(statement, 1).empty()) return statement;
  }
  return text;
}

}  // namespace tamis
