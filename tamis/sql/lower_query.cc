#include "tamis/sql/lower_query.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <vector>

#include "tamis/table/expression.h"

namespace tamis {
namespace {

constexpr size_t kLongestStatement = 100'000;

struct Token {
  enum class Kind { kWord, kName, kText, kOther, kEnd };  // kName: in quotes of names
  Kind kind = Kind::kOther;
  std::string word;  // kWord: in lower case; kName: without quotes; kOther: the character
  size_t begin = 0, end = 0;

  bool Is(std::string_view expected) const {
    return (kind == Kind::kWord || kind == Kind::kOther) && word == expected;
  }
  bool IsOneOf(std::initializer_list<std::string_view> words) const {
    return std::ranges::any_of(words, [this](std::string_view one) { return Is(one); });
  }
  bool IsName() const { return kind == Kind::kWord || kind == Kind::kName; }
};

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80) != 0;
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
  if (std::isspace(static_cast<unsigned char>(sql[at]))) return at + 1;
  const std::string_view two = sql.substr(at, 2);
  if (two != "--" && two != "/*") return at;
  const size_t end = sql.find(two == "--" ? "\n" : "*/", at + 2);
  return end == std::string_view::npos ? sql.size() : end + (two == "--" ? 1 : 2);
}

// With a token of kEnd after the last one. Empty where quotes do not end.
std::vector<Token> Tokenize(std::string_view sql) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < sql.size();) {
    if (const size_t next = SkipBlank(sql, at); next > at) {
      at = next;
      continue;
    }
    Token token{.begin = at};
    const char c = sql[at];
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
      token.kind = c == '\'' ? Token::Kind::kText : Token::Kind::kName;
      token.end = EndOfQuotes(sql, at, c == '[' ? ']' : c, &token.word);
      if (token.end == std::string_view::npos) return {};
    } else if (IsWordChar(c)) {
      token.end = at;
      while (token.end < sql.size() && IsWordChar(sql[token.end])) ++token.end;
      token.word = AsciiLower(sql.substr(at, token.end - at));
      const bool is_number = std::isdigit(static_cast<unsigned char>(c)) != 0;
      const bool is_blob = token.end < sql.size() && sql[token.end] == '\'';  // x'00'
      token.kind = is_number || is_blob ? Token::Kind::kOther : Token::Kind::kWord;
    } else {
      token.word = c;
      token.end = at + 1;
    }
    at = token.end;
    tokens.push_back(std::move(token));
  }
  tokens.push_back({.kind = Token::Kind::kEnd, .begin = sql.size(), .end = sql.size()});
  return tokens;
}

struct TableInFrom {
  std::string table;
  std::string name;  // by which columns are qualified, in lower case
};

class Rewriter {
 public:
  Rewriter(std::string_view sql, Engine* engine)
      : sql_(sql), engine_(engine), tokens_(Tokenize(sql)) {}

  std::optional<std::string> Run() {
    if (!IsPlainSelect() || !FindTables()) return std::nullopt;
    std::string out;
    size_t copied = 0;
    for (size_t i = conditions_; i < end_; ++i) {
      const auto column = ComparedColumn(i);
      if (!column.has_value()) continue;
      // From "lower" to the parenthesis.
      out += sql_.substr(copied, tokens_[i].begin - copied);
      out += *column;
      copied = tokens_[CloseOf(i)].end;
    }
    if (copied == 0) return std::nullopt;
    return out.append(sql_.substr(copied));
  }

 private:
  const Token& At(size_t i) const { return tokens_[std::min(i, tokens_.size() - 1)]; }

  bool IsPlainSelect() {
    if (tokens_.empty() || !tokens_[0].Is("select")) return false;
    const auto count = [&](std::string_view word) {
      return std::ranges::count_if(tokens_, [&](const Token& token) { return token.Is(word); });
    };
    has_between_ = count("between") > 0;
    return count("select") == 1 && count("from") == 1 && count("lower") > 0 && count("values") == 0;
  }

  // Reads what stands between FROM and the clauses after it, to the end of WHERE.
  bool FindTables() {
    const auto from = std::ranges::find_if(tokens_, [](const Token& t) { return t.Is("from"); });
    size_t i = static_cast<size_t>(from - tokens_.begin()) + 1;
    end_ = i;
    while (end_ < tokens_.size() && !EndsWhere(tokens_[end_])) ++end_;
    conditions_ = i;
    for (;;) {
      if (!TakeTable(&i)) return false;
      // To the next table, over its ON or USING.
      int depth = 0;
      for (; i < end_ && (depth > 0 || !IsBetweenTables(At(i))); ++i) {
        depth += At(i).Is("(") ? 1 : At(i).Is(")") ? -1 : 0;
        if (depth == 0 && At(i).Is("where")) return true;
      }
      if (i >= end_) return true;
      while (IsBetweenTables(At(i))) ++i;
    }
  }
  static bool EndsWhere(const Token& token) {
    return token.IsOneOf({"group", "having", "order", "limit", "window", ";"});
  }
  static bool IsBetweenTables(const Token& token) {
    return token.IsOneOf(
        {",", "natural", "left", "right", "full", "outer", "inner", "cross", "join"});
  }
  static bool IsReserved(const Token& token) {
    return token.IsOneOf({"on", "using", "where"}) || IsBetweenTables(token) || EndsWhere(token);
  }

  // NAME [[AS] ALIAS]
  bool TakeTable(size_t* i) {
    const Token& table = At(*i);
    if (!table.IsName() || IsReserved(table)) return false;
    const bool is_word = table.kind == Token::Kind::kWord;
    TableInFrom found{.table = is_word
                                   ? std::string(sql_.substr(table.begin, table.end - table.begin))
                                   : table.word,
                      .name = AsciiLower(table.word)};
    ++*i;
    const bool as = At(*i).Is("as");
    if (as) ++*i;
    if (At(*i).IsOneOf({".", "(", "indexed", "not"})) return false;
    if (At(*i).IsName() && !IsReserved(At(*i))) {
      found.name = AsciiLower(At(*i).word);
      ++*i;
    } else if (as) {
      return false;
    }
    const bool is_double = std::ranges::any_of(
        tables_, [&](const TableInFrom& other) { return other.name == found.name; });
    tables_.push_back(std::move(found));
    return !is_double;
  }

  // The position of the parenthesis after lower(c) or lower(t.c).
  size_t CloseOf(size_t i) const { return At(i + 3).Is(".") ? i + 5 : i + 3; }

  // If a comparison of lower() with literals begins here: the computed column, as SQL.
  std::optional<std::string> ComparedColumn(size_t i) const {
    const size_t close = CloseOf(i);
    const bool is_qualified = close == i + 5;
    if (!At(i).Is("lower") || !At(i + 1).Is("(") || !At(i + 2).IsName() ||
        !At(close - 1).IsName() || !At(close).Is(")") || !IsWholeComparison(i, close)) {
      return std::nullopt;
    }
    const auto table = std::ranges::find_if(tables_, [&](const TableInFrom& one) {
      return is_qualified ? one.name == AsciiLower(At(i + 2).word) : tables_.size() == 1;
    });
    if (table == tables_.end()) return std::nullopt;
    const auto computed = ComputedColumn(table->table, AsciiLower(At(close - 1).word));
    if (!computed.has_value()) return std::nullopt;
    const auto qualifier = sql_.substr(At(i + 2).begin, At(i + 2).end - At(i + 2).begin);
    return (is_qualified ? std::string(qualifier) + "." : "") + Quoted(*computed);
  }

  // Whether the operator and its literals follow, and neither they nor lower() belong to a larger
  // operand.
  bool IsWholeComparison(size_t i, size_t close) const {
    const Token& before = At(i - 1);
    if (!before.IsOneOf({"where", "on", "and", "or", "not", "("})) return false;
    if (before.Is("and") && has_between_) return false;
    size_t next = close + 1;
    if (At(next).Is("in")) {
      if (!At(++next).Is("(")) return false;
      do {
        if (At(next + 1).kind != Token::Kind::kText) return false;
        next += 2;
      } while (At(next).Is(","));
      if (!At(next).Is(")")) return false;
    } else {
      if (!At(next).IsOneOf({"=", "<", ">", "like", "glob"})) return false;
      if (!At(next).IsOneOf({"like", "glob"}) && At(next + 1).Is("=")) ++next;
      if (At(++next).kind != Token::Kind::kText) return false;
    }
    const Token& behind = At(next + 1);
    return behind.kind == Token::Kind::kEnd || behind.IsOneOf({"and", "or", ")"}) ||
           EndsWhere(behind) || IsBetweenTables(behind) || behind.Is("where");
  }

  // The column that is lower() of this one.
  std::optional<std::string> ComputedColumn(const std::string& table,
                                            const std::string& source) const {
    const auto schema = engine_->Table(table);
    if (!schema.ok()) return std::nullopt;
    for (const Column& column : (*schema)->columns) {
      if (!column.is_computed() || column.expression->function != Expression::Function::kLower) {
        continue;
      }
      if (AsciiLower((*schema)->columns[column.expression->source].name) == source) {
        return column.name;
      }
    }
    return std::nullopt;
  }

  // SQLite takes a name in double quotes for a text where there is no such column.
  static std::string Quoted(const std::string& name) {
    std::string out = "`";
    for (const char c : name) out += c == '`' ? "``" : std::string(1, c);
    return out + "`";
  }

  const std::string_view sql_;
  Engine* const engine_;
  const std::vector<Token> tokens_;
  std::vector<TableInFrom> tables_;
  bool has_between_ = false;
  size_t conditions_ = 0, end_ = 0;  // tokens of FROM and WHERE
};

bool MentionsLower(std::string_view sql) {
  return AsciiLower(sql).find("lower") != std::string::npos;
}

}  // namespace

std::optional<std::string> RewriteLower(std::string_view sql, Engine* engine) {
  if (sql.size() > kLongestStatement || !MentionsLower(sql)) return std::nullopt;
  return Rewriter(sql, engine).Run();
}

}  // namespace tamis
