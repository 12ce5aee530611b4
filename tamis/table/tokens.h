// Tokens: the words of a definition or a condition: names, numbers, quoted text, single characters.
//
// Threads: exclusive access.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace tamis {

class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) { Advance(); }

  // In lower case, unless it is quoted. Empty at the end, or for empty quotes.
  const std::string& word() const { return word_; }
  bool done() const { return word_.empty() && !quoted(); }
  bool quoted() const { return quote_ != 0; }
  char quote() const { return quote_; }  // the character that it is quoted by; 0: none

  // Takes the word if it is this one, not in quotes.
  bool Take(std::string_view expected) {
    if (quoted() || word_ != expected) return false;
    Advance();
    return true;
  }
  std::string TakeWord() {
    std::string word = std::move(word_);
    Advance();
    return word;
  }

 private:
  void Advance() {
    word_.clear();
    quote_ = 0;
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) {
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) return;
    if (rest_[0] == '"' || rest_[0] == '`' || rest_[0] == '\'') return AdvanceQuoted();
    size_t size = 0;
    while (size < rest_.size() && IsWordChar(rest_[size])) ++size;
    size = std::max<size_t>(size, 1);
    word_ = rest_.substr(0, size);
    std::transform(word_.begin(), word_.end(), word_.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    rest_.remove_prefix(size);
  }

  // The quote itself is written twice inside.
  void AdvanceQuoted() {
    quote_ = rest_[0];
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == quote_) {
        if (rest_.empty() || rest_[0] != quote_) return;
        rest_.remove_prefix(1);
      }
      word_ += c;
    }
  }

  static bool IsWordChar(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
           c == '+' || static_cast<unsigned char>(c) >= 0x80;
  }

  std::string_view rest_;
  std::string word_;
  char quote_ = 0;
};

}  // namespace tamis
