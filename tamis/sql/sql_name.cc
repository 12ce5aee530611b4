#include "tamis/sql/sql_name.h"

#include <algorithm>

#include "tamis/table/expression.h"

namespace tamis {

std::string QuotedName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += c;
    out += c;
  }
  return out + '"';
}

std::string UnquotedName(std::string_view written) {
  if (!written.starts_with('"')) return std::string(written);
  std::string out;
  for (size_t i = 1; i + 1 < written.size(); ++i) {
    out += written[i];
    if (written[i] == '"') ++i;  // twice, for one
  }
  return out;
}

std::optional<uint32_t> FindColumnInAnyCase(const TableSchema& schema, std::string_view name) {
  const auto column = std::ranges::find_if(schema.columns, [&](const Column& one) {
    return AsciiLower(one.name) == AsciiLower(name) && !one.is_dropped();
  });
  if (column == schema.columns.end()) return std::nullopt;
  return static_cast<uint32_t>(column - schema.columns.begin());
}

std::string_view SqlType(Type type) {
  switch (type) {
    case Type::kText:
      return "TEXT";
    case Type::kBytes:
      return "BLOB";
    case Type::kInt64:
      return "INTEGER";
    case Type::kDouble:
      return "REAL";
    case Type::kBool:
      return "BOOLEAN";
    case Type::kTimestamp:
      return "TIMESTAMP TEXT";
    case Type::kDecimal:
      return "DECIMAL";
  }
  return "";
}

}  // namespace tamis
