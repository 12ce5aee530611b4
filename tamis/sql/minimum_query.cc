#include "tamis/sql/minimum_query.h"

#include <algorithm>
#include <regex>

#include "tamis/sql/sql_name.h"
#include "tamis/table/expression.h"

namespace tamis {
namespace {

constexpr size_t kLongestMinimum = 1000;

// A value that is not above any of the type, as SQL. Null where SQLite's order is not that of the
// index.
const char* LeastOf(Type type) {
  switch (type) {
    case Type::kBool:
    case Type::kInt64:
      return "-9223372036854775808";
    case Type::kDouble:
      return "-9e999";
    case Type::kText:
      return "''";
    case Type::kBytes:
      return "x''";
    default:
      return nullptr;
  }
}

// The position of the column, if a full index begins with it.
std::optional<uint32_t> FindOrdered(const TableSchema& schema, const std::string& name) {
  const auto position = FindColumnInAnyCase(schema, name);
  if (!position.has_value() || LeastOf(schema.columns[*position].type) == nullptr) {
    return std::nullopt;
  }
  const bool indexed = std::ranges::any_of(schema.indexes, [&](const IndexSpec& index) {
    return index.columns[0] == *position && !index.IsPartial();
  });
  return indexed ? position : std::nullopt;
}

}  // namespace

std::optional<std::string> RewriteMinimum(std::string_view sql, Engine* engine) {
  static const std::regex kMinimum(std::string("\\s*SELECT\\s+(MIN\\s*\\(\\s*") + kNamePattern +
                                       "\\s*\\))(?:\\s+(?:AS\\s+)?" + kNamePattern +
                                       ")?\\s+FROM\\s+" + kNamePattern + "\\s*;?\\s*",
                                   std::regex::icase | std::regex::optimize);
  std::match_results<std::string_view::const_iterator> parts;
  if (sql.size() > kLongestMinimum || !std::regex_match(sql.begin(), sql.end(), parts, kMinimum)) {
    return std::nullopt;
  }
  const auto table = engine->Table(AsciiLower(UnquotedName(parts[4].str())));
  if (!table.ok()) return std::nullopt;
  const TableSchema& schema = **table;
  const auto position = FindOrdered(schema, UnquotedName(parts[2].str()));
  if (!position.has_value()) return std::nullopt;
  const std::string column = QuotedName(schema.columns[*position].name);
  const std::string shown = parts[3].matched ? UnquotedName(parts[3].str()) : parts[1].str();
  return "SELECT (SELECT " + column + " FROM " + parts[4].str() + " WHERE " + column +
         " >= " + LeastOf(schema.columns[*position].type) + " ORDER BY " + column +
         " LIMIT 1) AS " + QuotedName(shown);
}

}  // namespace tamis
