// Random values, schemas and conditions for tests: drawn to collide, to share prefixes and to sit
// on the edges of their types.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/table/codec.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

namespace tamis {

inline constexpr Type kAllTypes[] = {Type::kText, Type::kBytes,     Type::kInt64,  Type::kDouble,
                                     Type::kBool, Type::kTimestamp, Type::kDecimal};

inline std::string RandomBytes(Random& random) {
  static constexpr char kAlphabet[] = {'\0', '\x01', '\x02', 'a', 'b', '\xfe', '\xff'};
  std::string out;
  if (random.OneIn(20)) out.assign(kIndexValueLimit - 2 + random.Uniform(4), 'a');
  const uint64_t size = random.Uniform(5);
  for (uint64_t i = 0; i < size; ++i) out += kAlphabet[random.Uniform(sizeof(kAlphabet))];
  return out;
}

inline std::string RandomDecimal(Random& random) {
  std::string out = random.OneIn(2) ? "-" : "";
  uint64_t size = 1 + random.Uniform(6);
  if (random.OneIn(30)) size += 2 * kIndexValueLimit - 3;
  for (uint64_t i = 0; i < size; ++i) {
    if (i > 0 && i == size / 2 && random.OneIn(2)) out += '.';
    out += static_cast<char>('0' + (random.OneIn(2) ? 0 : random.Uniform(10)));
  }
  if (random.OneIn(3)) out += "e" + std::to_string(static_cast<int>(random.Uniform(9)) - 4);
  return out;
}

// Never NULL.
inline Value RandomValue(Type type, Random& random) {
  switch (type) {
    case Type::kText:
      return Value::Text(RandomBytes(random));
    case Type::kBytes:
      return Value::Bytes(RandomBytes(random));
    case Type::kInt64:
    case Type::kTimestamp: {
      int64_t n = static_cast<int64_t>(random.Uniform(9)) - 4;
      if (random.OneIn(4)) n = static_cast<int64_t>(random());
      if (random.OneIn(10)) n = std::numeric_limits<int64_t>::min() + (n & 1);
      if (random.OneIn(10)) n = std::numeric_limits<int64_t>::max() - (n & 1);
      return type == Type::kInt64 ? Value::Int64(n) : Value::Timestamp(n);
    }
    case Type::kDouble: {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const double edges[] = {0.0,    -0.0,   1.5,       -1.5,       2.0, 1e300,
                              -1e300, 5e-324, kInfinity, -kInfinity, 0.1, -0.1};
      if (random.OneIn(3)) return *Value::Double((random.UniformDouble() - 0.5) * 1e6);
      return *Value::Double(edges[random.Uniform(std::size(edges))]);
    }
    case Type::kBool:
      return Value::Bool(random.OneIn(2));
    case Type::kDecimal:
      return *Value::Decimal(RandomDecimal(random));
  }
  return {};
}

inline Value RandomCell(Type type, Random& random) {
  return random.OneIn(8) ? Value() : RandomValue(type, random);
}

// A column of each type, of which the first and third are the key, and two indexes.
inline TableSchema SchemaOfAllTypes() {
  TableSchema schema;
  schema.name = "t";
  for (const Type type : kAllTypes) {
    schema.columns.push_back({.id = schema.next_column_id,
                              .name = "c" + std::to_string(schema.next_column_id),
                              .type = type});
    ++schema.next_column_id;
  }
  schema.key = {0, 2};
  for (const uint32_t column : schema.key) schema.columns[column].nullable = false;
  schema.indexes = {{.id = 1, .name = "by_four", .columns = {1, 3, 6, 2}},
                    {.id = 2, .name = "by_bool", .columns = {4}}};
  schema.next_index_id = 3;
  return schema;
}

inline Row RandomRow(const TableSchema& schema, Random& random) {
  Row row;
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const Type type = schema.columns[i].type;
    row.push_back(schema.IsKey(i) ? RandomValue(type, random) : RandomCell(type, random));
  }
  return row;
}

inline Predicate RandomPredicate(const TableSchema& schema, Random& random, int depth) {
  const auto column = static_cast<uint32_t>(random.Uniform(schema.columns.size()));
  const Type type = schema.columns[column].type;
  const auto values = [&](uint64_t n) {
    std::vector<Value> out;
    for (uint64_t i = 0; i < n; ++i) out.push_back(RandomCell(type, random));
    return out;
  };
  const auto children = [&] {
    std::vector<Predicate> out;
    const uint64_t n = random.Uniform(4);
    for (uint64_t i = 0; i < n; ++i) out.push_back(RandomPredicate(schema, random, depth - 1));
    return out;
  };
  switch (random.Uniform(depth > 0 ? 12 : 8)) {
    case 0:
      return random.OneIn(2) ? Predicate::True() : Predicate::False();
    case 1:
      return Predicate::IsNull(column);
    case 2:
      return Predicate::NotNull(column);
    case 3:
      return Predicate::In(column, values(random.Uniform(4)));
    case 4:
      return Predicate::Prefix(0, RandomBytes(random));
    case 8:
    case 9:
      return Predicate::And(children());
    case 10:
      return Predicate::Or(children());
    case 11:
      return Predicate::Not(RandomPredicate(schema, random, depth - 1));
    default:
      return Predicate::Compare(column, static_cast<Predicate::Op>(1 + random.Uniform(6)),
                                values(1)[0]);
  }
}

}  // namespace tamis
