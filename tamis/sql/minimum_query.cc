#include "tamis/sql/minimum_query.h"

#include <algorithm>

#include "tamis/sql/sql_name.h"

namespace tamis {
namespace {

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

// Whether a full index begins with the column, in the order that SQLite gives its values.
bool IsOrdered(const TableSchema& schema, uint32_t column) {
  if (LeastOf(schema.columns[column].type) == nullptr) return false;
  return std::ranges::any_of(schema.indexes, [&](const IndexSpec& index) {
    return index.columns[0] == column && !index.IsPartial();
  });
}

}  // namespace

std::optional<std::string> RewriteMinimum(const SelectStatement& statement, Engine* engine) {
  const auto shown = statement.ResultColumns();
  const bool has_clauses = !statement.where.empty() || !statement.group_by.empty() ||
                           !statement.having.empty() || !statement.order_by.empty() ||
                           !statement.limit.empty();
  if (!statement.is_plain || has_clauses || !shown.has_value() || shown->size() != 1) {
    return std::nullopt;
  }
  // min ( a )
  const SelectStatement::Range call = (*shown)[0].expression;
  if (!statement.At(call.begin).Is("min") || call.end - call.begin < 4) return std::nullopt;
  const auto table = engine->Table(statement.tables[0].table);
  if (!table.ok()) return std::nullopt;
  const TableSchema& schema = **table;
  const auto position = statement.ColumnAt({call.begin + 2, call.end - 1}, schema);
  if (!position.has_value() || !IsOrdered(schema, *position)) return std::nullopt;
  const std::string column = QuotedName(schema.columns[*position].name);
  // SQLite gives a subquery the declared type of its column, and an expression none, as min(a).
  return "SELECT +(SELECT " + column + " FROM " + QuotedName(schema.name) + " WHERE " + column +
         " >= " + LeastOf(schema.columns[*position].type) + " ORDER BY " + column +
         " LIMIT 1) AS " + QuotedName((*shown)[0].alias.value_or((*shown)[0].span));
}

}  // namespace tamis
