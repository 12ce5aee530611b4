// Tables with keys of every format, for tests: keys of them, and conditions on their parts.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/table/key_format.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {

// A table whose key has these parts, each "TYPE PART": "int64 long", "text until=|".
inline TableSchema SchemaOfKey(const std::vector<std::string>& parts) {
  TableSchema schema;
  schema.name = "t";
  for (const std::string& part : parts) {
    const size_t space = part.find(' ');
    const Type type = *ParseType(part.substr(0, space));
    const auto parsed = ParseKeyPart(type, part.substr(space + 1));
    const auto position = static_cast<uint32_t>(schema.columns.size());
    schema.columns.push_back({.id = schema.next_column_id++,
                              .name = "k" + std::to_string(position),
                              .type = type,
                              .nullable = false});
    schema.key.push_back(position);
    schema.key_parts.push_back(*parsed);
  }
  schema.columns.push_back({.id = schema.next_column_id++, .name = "v", .type = Type::kInt64});
  return schema;
}

inline std::vector<TableSchema> SchemasOfAllKeys() {
  std::vector<TableSchema> schemas;
  for (const std::vector<std::string>& parts : std::vector<std::vector<std::string>>{
           {"int64 ordered", "text ordered"},
           {"text rest"},
           {"bytes rest"},
           {"int64 text:rest"},
           {"decimal text:rest"},
           {"decimal bigdecimal:rest"},
           {"timestamp text:rest"},
           {"text until=\\x00", "int64 long"},
           {"text until=\\x00\\x00", "text rest"},
           {"text until=|", "text rest"},
           {"bytes until=ab", "bytes until=\\x00", "int64 byte"},
           {"int64 text:until=-", "text rest"},
           {"bytes width=1", "text width=3", "int64 long"},
           {"int64 long", "text rest"},
           {"int64 int"},
           {"int64 short", "int64 byte"},
           {"int64 phoenix_long", "int64 phoenix_int"},
           {"double double", "text rest"},
           {"double float", "double phoenix_float"},
           {"double phoenix_double", "text rest"},
           {"bool byte", "bool phoenix", "bool text:rest"},
           {"timestamp millis", "timestamp phoenix_date"},
           {"timestamp seconds", "timestamp micros"},
           {"int64 byte", "text ordered", "int64 long"},
       }) {
    schemas.push_back(SchemaOfKey(parts));
  }
  return schemas;
}

// A value as it may well come in a key of the part, or not at all.
inline Value RandomKeyValue(Type type, const KeyPart& part, Random& random) {
  if (type == Type::kText || type == Type::kBytes) {
    std::string text;
    uint64_t size = random.Uniform(4);
    if (part.width != 0 && !random.OneIn(8)) size = part.width;
    for (uint64_t i = 0; i < size; ++i) {
      text += std::string("\0\1ab|\xff", 6)[random.Uniform(6)];
    }
    return type == Type::kText ? Value::Text(text) : Value::Bytes(text);
  }
  if (type == Type::kTimestamp && !random.OneIn(4)) {
    const int64_t units[] = {1, 1000, 1'000'000};
    return Value::Timestamp((static_cast<int64_t>(random.Uniform(9)) - 4) * 500'000 *
                            units[random.Uniform(3)]);
  }
  if (type == Type::kInt64 && random.OneIn(3)) {
    const int64_t edges[] = {-129, -128, 127, 128, 255, 256, -32768, 32767, 65536, 2147483647};
    return Value::Int64(edges[random.Uniform(std::size(edges))]);
  }
  return RandomValue(type, random);
}

// Conditions on the column with this value in them, some of which it fulfils.
inline std::vector<Predicate> LeavesAbout(uint32_t column, const Value& value) {
  std::vector<Predicate> leaves = {Predicate::IsNull(column)};
  for (int op = 1; op <= 6; ++op) {
    leaves.push_back(Predicate::Compare(column, static_cast<Predicate::Op>(op), value));
  }
  if (value.is_null()) return leaves;
  if (value.type() != Type::kText && value.type() != Type::kBytes) return leaves;
  for (size_t size = 0; size <= value.str().size(); ++size) {
    Predicate leaf = Predicate::Prefix(column, value.str().substr(0, size));
    if (value.type() == Type::kBytes) leaf.values[0] = Value::Bytes(leaf.values[0].str());
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

inline bool Allows(const std::optional<std::vector<KeySpan>>& spans, const std::string& key) {
  return !spans.has_value() || std::ranges::any_of(*spans, [&](const KeySpan& span) {
    return key >= span.start && (span.end.empty() || key < span.end);
  });
}

}  // namespace tamis
