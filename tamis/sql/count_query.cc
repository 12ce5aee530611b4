#include "tamis/sql/count_query.h"

#include <cctype>
#include <regex>

#include "tamis/sql/sql_name.h"
#include "tamis/sql/sqlite.h"
#include "tamis/table/expression.h"
#include "tamis/table/literal.h"

namespace tamis {
namespace {

constexpr size_t kLongestCount = 1000;

using Parts = std::match_results<std::string_view::const_iterator>;

// Whether SQLite, too, reads the word as a name: CURRENT_DATE, for one, is a value.
bool IsName(const std::string& word) {
  if (word.starts_with('"')) return true;
  return std::isdigit(static_cast<unsigned char>(word.front())) == 0 &&
         sqlite3_keyword_check(word.data(), static_cast<int>(word.size())) == 0;
}

// "status = 'open' AND total >= 100" in the language of tamis_aggregate; nullopt: it may mean
// something else there.
std::optional<std::string> ConditionOf(const TableSchema& schema, std::string_view where) {
  static const std::regex kComparison(
      std::string("\\s*") + kNamePattern +
          "\\s*(=|==|<|<=|>|>=)\\s*(0|-?[1-9][0-9]{0,17}|'(?:[^']|'')*')(?:\\s+(AND)\\b|\\s*$)",
      std::regex::icase | std::regex::optimize);
  std::string condition;
  for (bool more = true; more;) {
    Parts parts;
    if (!std::regex_search(where.begin(), where.end(), parts, kComparison,
                           std::regex_constants::match_continuous)) {
      return std::nullopt;
    }
    if (!IsName(parts[1].str())) return std::nullopt;
    const auto position = FindColumnInAnyCase(schema, UnquotedName(parts[1].str()));
    if (!position.has_value()) return std::nullopt;
    const Column& column = schema.columns[*position];
    const std::string value = parts[3].str();
    const Type comparable = value.front() == '\'' ? Type::kText : Type::kInt64;
    if (column.type != comparable) return std::nullopt;
    const std::string op = parts[2].str() == "==" ? "=" : parts[2].str();
    condition +=
        (condition.empty() ? "" : " AND ") + QuotedName(column.name) + " " + op + " " + value;
    more = parts[4].matched;
    where.remove_prefix(static_cast<size_t>(parts.length(0)));
  }
  return condition;
}

}  // namespace

std::optional<std::string> RewriteCount(std::string_view sql, Engine* engine) {
  static const std::regex kCount(
      std::string("\\s*SELECT\\s+(COUNT\\s*\\(\\s*\\*\\s*\\))(?:\\s+(?:AS\\s+)?") + kNamePattern +
          ")?\\s+FROM\\s+" + kNamePattern +
          // The blanks before the end belong to one part only: what else
          // costs much time to tell apart.
          "(?:\\s+WHERE\\b([^;]*)|\\s*)(?:;\\s*)?",
      std::regex::icase | std::regex::optimize);
  Parts parts;
  if (sql.size() > kLongestCount || !std::regex_match(sql.begin(), sql.end(), parts, kCount)) {
    return std::nullopt;
  }
  if (!IsName(parts[3].str()) || (parts[2].matched && !IsName(parts[2].str()))) return std::nullopt;
  const auto table = engine->Table(AsciiLower(UnquotedName(parts[3].str())));
  if (!table.ok()) return std::nullopt;
  std::string condition;
  if (parts[4].matched) {
    const auto read = ConditionOf(**table, std::string_view(parts[4].first, parts[4].second));
    if (!read.has_value()) return std::nullopt;
    condition = *read;
  }
  const std::string shown = parts[2].matched ? UnquotedName(parts[2].str()) : parts[1].str();
  // A count has no declared type.
  return "SELECT +count AS " + QuotedName(shown) + " FROM tamis_aggregate(" +
         Literal(Value::Text((*table)->name)) + ", '', '', " + Literal(Value::Text(condition)) +
         ")";
}

}  // namespace tamis
