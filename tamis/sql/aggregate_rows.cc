#include "tamis/sql/aggregate_rows.h"

#include <algorithm>

#include "tamis/table/condition.h"

namespace tamis {
namespace {

constexpr size_t kMostBy = 8;  // columns g1, g2, ...

std::string Trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// Positions of columns whose names are separated by commas.
Result<std::vector<uint32_t>> ColumnsOf(const TableSchema& schema, std::string_view text) {
  std::vector<uint32_t> columns;
  if (Trimmed(text).empty()) return columns;
  while (true) {
    const size_t comma = text.find(',');
    const std::string name = Trimmed(text.substr(0, comma));
    const auto column = schema.FindColumn(name);
    if (!column) {
      return InvalidArgument("tamis_aggregate: table \"" + schema.name + "\" has no column \"" +
                             name + "\"; columns are separated by commas");
    }
    columns.push_back(*column);
    if (comma == std::string_view::npos) return columns;
    text.remove_prefix(comma + 1);
  }
}

Value Number(uint64_t n) { return Value::Int64(static_cast<int64_t>(n)); }

}  // namespace

std::string AggregateColumns() {
  std::string columns;
  for (size_t i = 1; i <= kMostBy; ++i) columns += "g" + std::to_string(i) + ", ";
  return columns + "count INTEGER, \"column\" TEXT, not_null INTEGER, sum, min, max";
}

Result<std::vector<Row>> AggregateRows(Session* session,
                                       const std::vector<std::string>& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, session->engine->Table(arguments[0]));
  AggregateOptions options;
  TAMIS_ASSIGN_OR_RETURN(options.by, ColumnsOf(*schema, arguments[1]));
  TAMIS_ASSIGN_OR_RETURN(options.totals, ColumnsOf(*schema, arguments[2]));
  if (options.by.size() > kMostBy) {
    return InvalidArgument("tamis_aggregate groups by at most " + std::to_string(kMostBy) +
                           " columns, not " + std::to_string(options.by.size()));
  }
  if (!Trimmed(arguments[3]).empty()) {
    auto condition = ParseCondition(*schema, arguments[3]);
    if (!condition.ok()) return condition.status().WithContext("tamis_aggregate");
    options.predicate = *std::move(condition);
  }
  options.cancelled = &session->cancelled;
  options.timeout = std::chrono::hours(1);
  TAMIS_ASSIGN_OR_RETURN(const Aggregates aggregates, session->engine->Aggregate(schema, options));
  session->Note(aggregates.explain);
  std::vector<Row> rows;
  for (const AggregateGroup& group : aggregates.groups) {
    Row row = group.by;
    row.resize(kMostBy);
    row.push_back(Number(group.count));
    const size_t common = row.size();
    if (options.totals.empty()) row.resize(common + 5);
    if (options.totals.empty()) rows.push_back(row);
    for (size_t i = 0; i < options.totals.size(); ++i) {
      const ColumnAggregate& totals = group.totals[i];
      row.resize(common);
      row.push_back(Value::Text(schema->columns[options.totals[i]].name));
      row.push_back(Number(totals.values));
      for (const Value* value : {&totals.sum, &totals.least, &totals.greatest}) {
        row.push_back(*value);
      }
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace tamis
