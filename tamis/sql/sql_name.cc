#include "tamis/sql/sql_name.h"

namespace tamis {

std::string QuotedName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += c;
    out += c;
  }
  return out + '"';
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
