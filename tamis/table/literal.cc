#include "tamis/table/literal.h"

namespace tamis {

std::string Literal(const Value& value) {
  if (value.is_null()) return "NULL";
  if (value.type() == Type::kBytes) return "x'" + value.ToString().substr(2) + "'";
  if (value.type() != Type::kText && value.type() != Type::kTimestamp) return value.ToString();
  std::string out = "'";
  for (const char c : value.ToString()) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

}  // namespace tamis
