#include "tamis/sql/sql_tokens.h"

#include <algorithm>

#include "tamis/base/ascii.h"
#include "tamis/table/expression.h"

namespace tamis {
namespace {

bool IsWordChar(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         (c & 0x80) != 0;
}

size_t EndOfDigits(std::string_view sql, size_t at) {
  while (at < sql.size() && IsDigit(sql[at])) ++at;
  return at;
}

size_t EndOfWord(std::string_view sql, size_t at) {
  while (at < sql.size() && IsWordChar(sql[at])) ++at;
  return at;
}

// Behind the quotes that begin at `at`; npos where they do not end. A closing quote that is written
// twice is part of the text.
size_t EndOfQuotes(std::string_view sql, size_t at, char close, std::string* text) {
  for (++at; at < sql.size(); ++at) {
    if (sql[at] == close) {
      if (close == ']' || at + 1 == sql.size() || sql[at + 1] != close) return at + 1;
      ++at;
    }
    *text += sql[at];
  }
  return std::string_view::npos;
}

// The end of the white space or comment that begins at `at`; `at` where there is none.
size_t SkipBlank(std::string_view sql, size_t at) {
  if (std::string_view(" \t\n\f\r").find(sql[at]) != std::string_view::npos) return at + 1;
  const std::string_view two = sql.substr(at, 2);
  if (two != "--" && two != "/*") return at;
  const size_t end = sql.find(two == "--" ? "\n" : "*/", at + 2);
  return end == std::string_view::npos ? sql.size() : end + (two == "--" ? 1 : 2);
}

SqlToken NumberAt(std::string_view sql, size_t at) {
  SqlToken token{.kind = SqlToken::Kind::kNumber, .begin = at, .end = EndOfDigits(sql, at)};
  if (token.end < sql.size() && sql[token.end] == '.') token.end = EndOfDigits(sql, token.end + 1);
  const size_t all = EndOfWord(sql, token.end);  // 0x1f, 1e5
  if (all > token.end) token.kind = SqlToken::Kind::kOther;
  token.end = all;
  token.word = sql.substr(at, token.end - at);
  return token;
}

SqlToken WordAt(std::string_view sql, size_t at) {
  SqlToken token{.kind = SqlToken::Kind::kWord, .begin = at, .end = EndOfWord(sql, at)};
  token.word = AsciiLower(sql.substr(at, token.end - at));
  const bool is_blob = token.end < sql.size() && sql[token.end] == '\'';  // x'00'
  if (is_blob || sql[at] == '$') token.kind = SqlToken::Kind::kOther;
  return token;
}

}  // namespace

bool SqlToken::Is(std::string_view expected) const {
  return (kind == SqlToken::Kind::kWord || kind == SqlToken::Kind::kOther) && word == expected;
}

bool SqlToken::IsOneOf(std::initializer_list<std::string_view> words) const {
  return std::ranges::any_of(words, [this](std::string_view one) { return Is(one); });
}

std::vector<SqlToken> TokenizeSql(std::string_view sql) {
  if (sql.find('\0') != std::string_view::npos) return {};
  std::vector<SqlToken> tokens;
  for (size_t at = 0; at < sql.size();) {
    if (const size_t next = SkipBlank(sql, at); next > at) {
      at = next;
      continue;
    }
    const char c = sql[at];
    SqlToken token{.begin = at, .end = at + 1};
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
      token.kind = c == '\'' ? SqlToken::Kind::kText : SqlToken::Kind::kName;
      token.end = EndOfQuotes(sql, at, c == '[' ? ']' : c, &token.word);
      if (token.end == std::string_view::npos) return {};
    } else if (IsDigit(c)) {
      token = NumberAt(sql, at);
    } else if (IsWordChar(c)) {
      token = WordAt(sql, at);
    } else {
      token.word = c;
    }
    at = token.end;
    tokens.push_back(std::move(token));
  }
  tokens.push_back({.kind = SqlToken::Kind::kEnd, .begin = sql.size(), .end = sql.size()});
  return tokens;
}

}  // namespace tamis
