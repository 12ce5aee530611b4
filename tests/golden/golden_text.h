// How golden files write bytes and values (golden_writer.cc says which forms there are).
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/rocks/search_position.h"
#include "tamis/table/row.h"
#include "tamis/table/value.h"

namespace tamis {

inline std::string Hex(std::string_view bytes) {
  return bytes.empty() ? "-" : Value::Bytes(std::string(bytes)).ToString().substr(2);
}

inline std::string Hex64(uint64_t n) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(n));
  return text;
}

inline std::string Text(const Value& value) {
  if (value.is_null()) return "NULL";
  const std::string type = std::string(TypeName(value.type())) + ":";
  switch (value.type()) {
    case Type::kText:
    case Type::kBytes:
      return type + Hex(value.str());
    case Type::kDouble:
      return type + Hex64(std::bit_cast<uint64_t>(value.dbl()));
    case Type::kDecimal:
      return type + value.str();
    default:
      return type + std::to_string(value.int64());
  }
}

inline std::string Texts(const Row& row) {
  std::string out;
  for (const Value& value : row) out += (out.empty() ? "" : " ") + Text(value);
  return out;
}

inline std::string Text(SearchPosition::Order order) {
  switch (order) {
    case SearchPosition::Order::kRowKey:
      return "key";
    case SearchPosition::Order::kEntry:
      return "entry";
    case SearchPosition::Order::kEntryDescending:
      return "descending";
    case SearchPosition::Order::kRowKeyDescending:
      return "key_descending";
  }
  return "";
}

inline std::string Refused(const Result<std::string>& bytes) {
  return bytes.ok() ? Hex(*bytes) : "refused";
}

}  // namespace tamis
