// SqlToken: a word, name, text, number or other character of a statement, as SQLite reads it.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tamis {

struct SqlToken {
  enum class Kind {
    kWord,    // a keyword, or a name without quotes
    kName,    // in quotes of names: "a", `a`, [a]
    kText,    // 'a'
    kNumber,  // 42 or 0.25: digits, at most with a point and digits behind it
    kOther,   // another number, a blob, or one character
    kEnd,
  };
  Kind kind = Kind::kOther;
  std::string word = {};  // kWord: in lower case; kName and kText: without quotes; else as written
  size_t begin = 0, end = 0;  // its characters in the statement

  // Whether it is this keyword or character.
  bool Is(std::string_view expected) const;
  bool IsOneOf(std::initializer_list<std::string_view> words) const;
  bool IsName() const { return kind == Kind::kWord || kind == Kind::kName; }
};

// The tokens of the text, without blanks and comments, and one of kEnd behind them. Empty where
// quotes do not end, or where the text has a zero byte, at which SQLite ends.
std::vector<SqlToken> TokenizeSql(std::string_view sql);

}  // namespace tamis
