#include "tamis/sql/grouped_rows.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/sql/sql_name.h"
#include "tamis/sql/values.h"
#include "tamis/table/condition.h"
#include "tamis/table/tokens.h"

namespace tamis {
namespace {

using Function = SqlAggregate::Function;

constexpr std::pair<Function, const char*> kFunctions[] = {
    {Function::kCount, "count"}, {Function::kSum, "sum"}, {Function::kTotal, "total"},
    {Function::kAvg, "avg"},     {Function::kMin, "min"}, {Function::kMax, "max"}};
constexpr Type kTypes[] = {Type::kText, Type::kBytes,     Type::kInt64,  Type::kDouble,
                           Type::kBool, Type::kTimestamp, Type::kDecimal};

Status MalformedCall(const std::string& what) {
  return InvalidArgument("tamis_grouped: " + what + " cannot be read");
}

// Every whole number up to here is a double.
constexpr unsigned __int128 kWholeDoubles = uint64_t{1} << 53;
constexpr unsigned __int128 kInt64s = std::numeric_limits<int64_t>::max();

// Whether the sum of the values in any order, and each sum on the way, is at most `bound` from 0.
bool IsWithin(const ColumnAggregate& totals, unsigned __int128 bound) {
  if (totals.values == 0) return true;
  const auto size = [](__int128 n) { return static_cast<unsigned __int128>(n < 0 ? -n : n); };
  const __int128 least = totals.least.int64(), greatest = totals.greatest.int64();
  // With one sign, no sum on the way is larger than the last one.
  if (least >= 0 || greatest <= 0) return size(totals.sum.int64()) <= bound;
  return totals.values * std::max(size(least), size(greatest)) <= bound;
}

// The result of the aggregate; nullopt: SQLite's may be another one.
std::optional<Value> ResultOf(Function function, Type type, uint64_t rows,
                              const ColumnAggregate& totals) {
  switch (function) {
    case Function::kCountRows:
      return Value::Int64(static_cast<int64_t>(rows));
    case Function::kCount:
      return Value::Int64(static_cast<int64_t>(totals.values));
    case Function::kMin:
    case Function::kMax: {
      const bool is_time = type == Type::kTimestamp && totals.values > 0;
      if (is_time && !(IsInSqlOrder(totals.least) && IsInSqlOrder(totals.greatest))) {
        return std::nullopt;
      }
      return function == Function::kMin ? totals.least : totals.greatest;
    }
    case Function::kSum:
      if (!IsWithin(totals, kInt64s)) return std::nullopt;
      return totals.sum;
    case Function::kTotal:
    case Function::kAvg: {
      if (!IsWithin(totals, kWholeDoubles)) return std::nullopt;
      if (totals.values == 0 && function == Function::kAvg) return Value();
      double result = totals.values == 0 ? 0 : static_cast<double>(totals.sum.int64());
      if (function == Function::kAvg) result /= static_cast<double>(totals.values);
      return *Value::Double(result);
    }
  }
  return std::nullopt;
}

struct Grouping {
  std::vector<SqlAggregate> aggregates;
  AggregateOptions options;
  std::vector<size_t> totals;  // the place of each aggregate's column in options.totals
};

Result<std::vector<uint32_t>> GroupColumnsOf(const TableSchema& schema, const std::string& text) {
  std::vector<uint32_t> columns;
  for (Tokens tokens(text); !tokens.done(); tokens.Take(",")) {
    const auto column = schema.FindColumn(tokens.TakeWord());
    if (!column.has_value()) return MalformedCall("the list of columns \"" + text + "\"");
    columns.push_back(*column);
  }
  return columns;
}

Result<std::vector<SqlAggregate>> AggregatesOf(const TableSchema& schema, const std::string& text) {
  std::vector<SqlAggregate> aggregates;
  for (Tokens tokens(text); !tokens.done(); tokens.Take(",")) {
    const auto function = SqlAggregate::FunctionOf(tokens.TakeWord());
    const bool opened = tokens.Take("(");
    const bool all = tokens.Take("*");
    const auto column = all ? std::optional<uint32_t>(0) : schema.FindColumn(tokens.TakeWord());
    if (!function || !opened || !column || !tokens.Take(")")) {
      return MalformedCall("the list of aggregates \"" + text + "\"");
    }
    aggregates.push_back({all ? Function::kCountRows : *function, *column});
  }
  return aggregates;
}

Result<Grouping> GroupingOf(const TableSchema& schema, const std::vector<std::string>& arguments) {
  Grouping grouping;
  TAMIS_ASSIGN_OR_RETURN(grouping.options.by, GroupColumnsOf(schema, arguments[1]));
  TAMIS_ASSIGN_OR_RETURN(grouping.aggregates, AggregatesOf(schema, arguments[2]));
  if (grouping.options.by.size() > GroupedLimits::kGroupColumns ||
      grouping.aggregates.size() > GroupedLimits::kAggregates) {
    return MalformedCall("a list that is so long");
  }
  std::vector<uint32_t>& totals = grouping.options.totals;
  for (const SqlAggregate& aggregate : grouping.aggregates) {
    const auto at = std::ranges::find(totals, aggregate.column);
    grouping.totals.push_back(static_cast<size_t>(at - totals.begin()));
    if (aggregate.function != Function::kCountRows && at == totals.end()) {
      totals.push_back(aggregate.column);
    }
  }
  if (!arguments[3].empty()) {
    TAMIS_ASSIGN_OR_RETURN(grouping.options.predicate, ParseCondition(schema, arguments[3]));
  }
  return grouping;
}

// kFailedPrecondition: SQLite's results may be others.
Result<std::vector<Row>> RowsOfGroups(const TableSchema& schema, const Grouping& grouping,
                                      const std::vector<AggregateGroup>& groups) {
  std::vector<Row> rows;
  for (const AggregateGroup& group : groups) {
    Row& row = rows.emplace_back(group.by);
    row.resize(GroupedLimits::kGroupColumns);
    for (size_t i = 0; i < grouping.aggregates.size(); ++i) {
      const SqlAggregate& aggregate = grouping.aggregates[i];
      static const ColumnAggregate kNone;
      const bool has_column = aggregate.function != Function::kCountRows;
      auto result = ResultOf(aggregate.function, schema.columns[aggregate.column].type, group.count,
                             has_column ? group.totals[grouping.totals[i]] : kNone);
      if (!result.has_value()) {
        return FailedPrecondition(aggregate.ToString(schema) +
                                  " depends on the order in which SQLite takes the values");
      }
      row.push_back(*std::move(result));
    }
  }
  return rows;
}

using Statement =
    std::unique_ptr<sqlite3_stmt,
                    decltype([](sqlite3_stmt* statement) { sqlite3_finalize(statement); })>;

Status SqlError(sqlite3* db, int rc) {
  if ((rc & 0xff) == SQLITE_NOMEM) return OutOfMemory();
  if (rc == SQLITE_INTERRUPT) return Cancelled(sqlite3_errmsg(db));
  return InvalidArgument(sqlite3_errmsg(db));
}

// The rows of a statement that gives the values of a group first.
Result<std::vector<Row>> RowsBySqlite(sqlite3* db, const std::string& sql, size_t group_columns) {
  sqlite3_stmt* prepared = nullptr;
  int rc = sqlite3_prepare_v2(db, sql.c_str(), -1, &prepared, nullptr);
  const Statement statement(prepared);
  if (rc != SQLITE_OK) return SqlError(db, rc);
  if (prepared == nullptr || sqlite3_stmt_readonly(prepared) == 0)
    return MalformedCall("the statement");
  std::vector<Row> rows;
  while ((rc = sqlite3_step(prepared)) == SQLITE_ROW) {
    Row& row = rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(prepared); ++i) {
      if (static_cast<size_t>(i) == group_columns) row.resize(GroupedLimits::kGroupColumns);
      row.push_back(FromSqlite(sqlite3_column_value(prepared, i)));
    }
  }
  if (rc != SQLITE_DONE) return SqlError(db, rc);
  return rows;
}

}  // namespace

std::string SqlAggregate::ToString(const TableSchema& schema) const {
  if (function == Function::kCountRows) return "count(*)";
  const auto* const named =
      std::ranges::find(kFunctions, function, &std::pair<Function, const char*>::first);
  return std::string(named->second) + "(" + schema.columns[column].name + ")";
}

std::optional<Function> SqlAggregate::FunctionOf(std::string_view name) {
  for (const auto& [function, named] : kFunctions) {
    if (name == named) return function;
  }
  return std::nullopt;
}

const char* SqlAggregate::WhyNot(Function function, Type type) {
  switch (function) {
    case Function::kCountRows:
    case Function::kCount:
      return nullptr;
    case Function::kMin:
    case Function::kMax:
      return type == Type::kDecimal ? "SQLite orders a decimal column as numbers and texts"
                                    : nullptr;
    case Function::kSum:
    case Function::kTotal:
    case Function::kAvg:
      if (type == Type::kInt64 || type == Type::kBool) return nullptr;
      return type == Type::kDouble ? "a sum of doubles depends on the order of rows"
                                   : "SQLite adds the values of the column as doubles";
  }
  return nullptr;
}

std::string GroupColumnName(size_t n, Type type) {
  return "g" + std::to_string(n + 1) + "_" + std::string(TypeName(type));
}

std::string AggregateColumnName(size_t n) { return "a" + std::to_string(n + 1); }

std::string GroupedColumns() {
  std::string columns;
  for (size_t n = 0; n < GroupedLimits::kGroupColumns; ++n) {
    for (const Type type : kTypes) {
      columns += GroupColumnName(n, type) + " " + std::string(SqlType(type)) + ", ";
    }
  }
  for (size_t n = 0; n < GroupedLimits::kAggregates; ++n) {
    columns += (n == 0 ? "" : ", ") + AggregateColumnName(n);
  }
  return columns;
}

size_t GroupedPlace(size_t column, size_t) {
  constexpr size_t kTyped = GroupedLimits::kGroupColumns * std::size(kTypes);
  if (column < kTyped) return column / std::size(kTypes);
  return GroupedLimits::kGroupColumns + (column - kTyped);
}

Result<std::vector<Row>> GroupedRows(sqlite3* db, Session* session,
                                     const std::vector<std::string>& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, session->engine->Table(arguments[0]));
  TAMIS_ASSIGN_OR_RETURN(Grouping grouping, GroupingOf(*schema, arguments));
  grouping.options.max_groups = GroupedLimits::kGroups;
  grouping.options.cancelled = &session->cancelled;
  grouping.options.timeout = std::chrono::hours(1);
  const auto found = session->engine->Aggregate(schema, grouping.options);
  Status why = found.status();
  if (found.ok()) {
    auto rows = RowsOfGroups(*schema, grouping, found->groups);
    if (rows.ok()) {
      session->Note(found->explain);
      return rows;
    }
    why = rows.status();
  }
  // A sum does not fit, or there are too many groups.
  const bool may_ask_sqlite = why.code() == StatusCode::kFailedPrecondition ||
                              why.code() == StatusCode::kInvalidArgument ||
                              why.code() == StatusCode::kResourceExhausted;
  if (!may_ask_sqlite || IsOutOfMemory(why) || session->cancelled) return why;
  session->aggregated_by_sqlite = why.message();
  return RowsBySqlite(db, arguments[4], grouping.options.by.size());
}

}  // namespace tamis
