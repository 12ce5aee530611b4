#include "tamis/sql/select_statement.h"

#include <algorithm>

#include "tamis/sql/sql_name.h"
#include "tamis/sql/sqlite.h"
#include "tamis/table/expression.h"

namespace tamis {
namespace {

bool IsReserved(const SqlToken& token) {
  return token.IsOneOf({"on", "using", "where"}) || SelectStatement::IsBetweenTables(token) ||
         SelectStatement::EndsWhere(token);
}

}  // namespace

bool IsSqlName(const SqlToken& token) {
  if (token.kind == SqlToken::Kind::kName) return !token.word.empty();
  return token.kind == SqlToken::Kind::kWord &&
         sqlite3_keyword_check(token.word.data(), static_cast<int>(token.word.size())) == 0;
}

const SqlToken& SelectStatement::At(size_t i) const {
  return tokens[std::min(i, tokens.size() - 1)];
}

std::string_view SelectStatement::Text(Range range) const {
  if (range.empty()) return {};
  const size_t begin = At(range.begin).begin;
  return sql.substr(begin, At(range.end - 1).end - begin);
}

bool SelectStatement::EndsWhere(const SqlToken& token) {
  return token.IsOneOf({"group", "having", "order", "limit", "window", ";"});
}

bool SelectStatement::IsBetweenTables(const SqlToken& token) {
  return token.IsOneOf(
      {",", "natural", "left", "right", "full", "outer", "inner", "cross", "join"});
}

std::optional<SelectStatement> SelectStatement::Parse(std::string_view sql) {
  SelectStatement statement;
  statement.sql = sql;
  statement.tokens = TokenizeSql(sql);
  if (statement.tokens.empty() || !statement.tokens[0].Is("select")) return std::nullopt;
  const auto count = [&](std::string_view word) {
    return std::ranges::count_if(statement.tokens,
                                 [&](const SqlToken& token) { return token.Is(word); });
  };
  if (count("select") != 1 || count("from") != 1 || count("values") != 0) return std::nullopt;
  if (!statement.FindTables()) return std::nullopt;
  statement.FindClauses();
  return statement;
}

// Reads what stands between FROM and the clauses after it, to the end of WHERE.
bool SelectStatement::FindTables() {
  size_t i = 0;
  while (!tokens[i].Is("from")) ++i;
  shown = {1, i};
  conditions.begin = ++i;
  conditions.end = i;
  while (conditions.end + 1 < tokens.size() && !EndsWhere(tokens[conditions.end])) ++conditions.end;
  from = conditions;
  for (;;) {
    if (!TakeTable(&i)) return false;
    is_plain = tables.size() == 1 && (i == conditions.end || At(i).Is("where"));
    // To the next table, over its ON or USING.
    int depth = 0;
    for (; i < conditions.end && (depth > 0 || !IsBetweenTables(At(i))); ++i) {
      depth += At(i).Is("(") ? 1 : At(i).Is(")") ? -1 : 0;
      if (depth == 0 && At(i).Is("where")) {
        from.end = i;
        where = {i + 1, conditions.end};
        return true;
      }
    }
    if (i >= conditions.end) return true;
    while (IsBetweenTables(At(i))) ++i;
  }
}

// NAME [[AS] ALIAS]
bool SelectStatement::TakeTable(size_t* i) {
  const SqlToken& table = At(*i);
  if (!table.IsName() || IsReserved(table)) return false;
  Table found{.table = AsciiLower(table.word), .name = AsciiLower(table.word)};
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
  const bool is_double =
      std::ranges::any_of(tables, [&](const Table& other) { return other.name == found.name; });
  tables.push_back(std::move(found));
  return !is_double;
}

std::optional<std::vector<SelectStatement::ResultColumn>> SelectStatement::ResultColumns() const {
  std::vector<ResultColumn> columns;
  for (size_t i = shown.begin;; ++i) {
    ResultColumn column{.expression = {i, i}};
    if (!At(i).IsName()) return std::nullopt;
    ++i;
    if (At(i).Is("(")) {
      for (int depth = 0; i < shown.end; ++i) {
        depth += At(i).Is("(") ? 1 : At(i).Is(")") ? -1 : 0;
        if (depth == 0) break;
      }
      ++i;
    } else if (At(i).Is(".")) {
      i += 2;
    }
    if (i > shown.end) return std::nullopt;
    column.expression.end = i;
    const size_t begin = At(column.expression.begin).begin;
    std::string_view span = sql.substr(begin, At(i).begin - begin);
    span.remove_suffix(span.size() - 1 - span.find_last_not_of(" \t\n\v\f\r"));
    column.span = span;
    const bool as = At(i).Is("as");
    if (as) ++i;
    if (i < shown.end && IsSqlName(At(i))) {
      column.alias = At(i).word;
      if (At(i).kind == SqlToken::Kind::kWord) {
        column.alias = sql.substr(At(i).begin, At(i).end - At(i).begin);
      }
      ++i;
    } else if (as) {
      return std::nullopt;
    }
    columns.push_back(std::move(column));
    if (i >= shown.end) return columns;
    if (!At(i).Is(",")) return std::nullopt;
  }
}

std::optional<uint32_t> SelectStatement::ColumnAt(Range range, const TableSchema& schema) const {
  const bool is_qualified = range.end == range.begin + 3 && At(range.begin + 1).Is(".");
  if (!is_qualified && range.end != range.begin + 1) return std::nullopt;
  if (is_qualified &&
      (!IsSqlName(At(range.begin)) || AsciiLower(At(range.begin).word) != tables[0].name)) {
    return std::nullopt;
  }
  const SqlToken& name = At(range.end - 1);
  return IsSqlName(name) ? FindColumnInAnyCase(schema, name.word) : std::nullopt;
}

// The clauses behind WHERE, in their order.
void SelectStatement::FindClauses() {
  size_t i = conditions.end;
  const auto take = [&](std::string_view word, bool by, Range* clause) {
    if (!At(i).Is(word)) return;
    ++i;
    if (by) {
      is_plain &= At(i).Is("by");
      ++i;
    }
    *clause = {i, i};
    while (i + 1 < tokens.size() && !EndsWhere(At(i))) ++i;
    clause->end = i;
    is_plain &= clause->begin < clause->end;
  };
  is_plain &= !(from.end != conditions.end && where.empty());
  take("group", true, &group_by);
  take("having", false, &having);
  take("order", true, &order_by);
  take("limit", false, &limit);
  if (At(i).Is(";")) ++i;
  is_plain &= At(i).kind == SqlToken::Kind::kEnd;
}

}  // namespace tamis
