// Orders: a table like that of TPC-H, but skewed and correlated, for tests of the cost of plans.
// Half of all orders are of one country, a quarter of the next; a city lies in one country; an
// order is shipped some days after it was made; the year follows from the day. Each column but the
// key has an index.
#pragma once

#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/table/predicate.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

struct Orders {
  enum Column : uint32_t { kId, kCountry, kCity, kDay, kShipped, kYear, kAmount, kNote };

  int64_t count = 0;
  uint64_t countries = 25;
  uint64_t cities = 20;  // cities of each country
  uint64_t days = 2500;
  uint64_t longest_delay = 30;
  uint64_t amounts = 100'000;
  bool few_large_amounts = false;  // else all are as frequent
  size_t note_bytes = 0;
  uint64_t expected_values = 1000;
  uint64_t seed = 1;

  TableSchema Schema() const {
    TableSchema schema;
    schema.name = "orders";
    for (const char* name : {"id", "country", "city", "day", "shipped", "year", "amount"}) {
      schema.columns.push_back({.name = name, .type = Type::kInt64, .nullable = false});
    }
    schema.columns.push_back({.name = "note", .type = Type::kText});
    schema.key = {kId};
    for (uint32_t column = kCountry; column <= kAmount; ++column) {
      schema.indexes.push_back({.name = schema.columns[column].name,
                                .columns = {column},
                                .expected_values = expected_values});
    }
    return schema;
  }

  std::vector<Row> Rows() const {
    Random random(seed);
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(random.Uniform(n)); };
    std::vector<Row> rows;
    for (int64_t id = 0; id < count; ++id) {
      uint64_t country = 0;
      while (country + 1 < countries && random.OneIn(2)) ++country;
      const int64_t city = static_cast<int64_t>(country * cities) + below(cities);
      const int64_t day = below(days);
      const int64_t shipped = day + 1 + below(longest_delay);
      int64_t amount = below(amounts);
      if (few_large_amounts) {
        const double share = static_cast<double>(amount) / static_cast<double>(amounts);
        amount = static_cast<int64_t>(share * share * share * static_cast<double>(amounts));
      }
      rows.push_back({Value::Int64(id), Value::Int64(static_cast<int64_t>(country)),
                      Value::Int64(city), Value::Int64(day), Value::Int64(shipped),
                      Value::Int64(day / 365), Value::Int64(amount),
                      Value::Text(std::string(note_bytes, 'n'))});
    }
    return rows;
  }
};

inline Predicate Equal(Orders::Column column, int64_t value) {
  return Predicate::Compare(column, Predicate::Op::kEq, Value::Int64(value));
}
inline Predicate Between(Orders::Column column, int64_t low, int64_t high) {
  return Predicate::Between(column, Value::Int64(low), Value::Int64(high));
}

inline uint64_t CountMatches(const std::vector<Row>& rows, const Predicate& predicate) {
  uint64_t count = 0;
  for (const Row& row : rows) count += predicate.Matches(row) ? 1 : 0;
  return count;
}

}  // namespace tamis
