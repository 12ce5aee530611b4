#include "tamis/cli/piped_statements.h"

#include <sqlite3.h>

#include <string_view>
#include <utility>

#include "tamis/cli/table_statements.h"

namespace tamis {
namespace {

// Nothing but blanks and complete comments.
bool IsBlank(std::string_view text) {
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return true;
    text.remove_prefix(begin);
    const bool is_line = text.starts_with("--");
    if (!is_line && !text.starts_with("/*")) return false;
    const size_t end = is_line ? text.find('\n') : text.find("*/", 2);
    if (end == std::string_view::npos) return is_line;
    text.remove_prefix(is_line ? end : end + 2);
  }
}

}  // namespace

std::optional<PipedStatements::Statement> PipedStatements::Next() {
  if (ahead_.empty()) return Read();
  std::optional<Statement> statement = std::move(ahead_.front());
  ahead_.pop_front();
  return statement;
}

bool PipedStatements::FindTable() {
  while (auto statement = Read()) {
    ahead_.push_back(*std::move(statement));
    if (TableStatements::MakesTable(ahead_.back().text)) return true;
  }
  return false;
}

std::optional<PipedStatements::Statement> PipedStatements::Read() {
  if (pending_) return Statement{*std::exchange(pending_, std::nullopt), line_};
  std::string text;
  bool has_semicolon = false;
  for (std::string line; std::getline(*in_, line);) {
    ++line_;
    line += "\n";
    if (line.starts_with('.') && IsBlank(text)) {
      if (text.empty()) return Statement{line, line_};
      pending_ = line;
      return Statement{text, line_ - 1};
    }
    text += line;
    // A statement is complete with its semicolon, or with the end of a comment after it.
    // sqlite3_complete reads the whole text: not once for each line of a long statement.
    const bool ends = line.find(';') != std::string::npos;
    has_semicolon = has_semicolon || ends;
    if (!ends && !(has_semicolon && line.find("*/") != std::string::npos)) continue;
    if (sqlite3_complete(text.c_str()) != 0) return Statement{text, line_};
  }
  if (text.empty()) return std::nullopt;
  return Statement{text, line_};
}

}  // namespace tamis
