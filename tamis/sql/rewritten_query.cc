#include "tamis/sql/rewritten_query.h"

#include "tamis/sql/aggregate_query.h"
#include "tamis/sql/lower_query.h"
#include "tamis/sql/minimum_query.h"
#include "tamis/sql/select_statement.h"

namespace tamis {
namespace {

constexpr size_t kLongestStatement = 100'000;

Result<std::string> Aggregated(const std::optional<SelectStatement>& statement, Engine* engine,
                               std::string_view no_aggregates) {
  if (!no_aggregates.empty()) return FailedPrecondition(std::string(no_aggregates));
  if (!statement.has_value()) return InvalidArgument("it is more than one SELECT of tables");
  return RewriteAggregates(*statement, engine);
}

}  // namespace

RewrittenQuery RewriteQuery(std::string_view sql, Engine* engine, std::string_view no_aggregates) {
  RewrittenQuery rewritten;
  if (sql.size() > kLongestStatement) return rewritten;
  auto statement = SelectStatement::Parse(sql);
  if (statement.has_value()) {
    rewritten.sql = RewriteMinimum(*statement, engine);
    if (rewritten.sql.has_value()) return rewritten;
    rewritten.sql = RewriteLower(*statement, engine);
    if (rewritten.sql.has_value()) statement = SelectStatement::Parse(*rewritten.sql);
  }
  if (!CallsAggregate(statement.has_value() ? statement->tokens : TokenizeSql(sql))) {
    return rewritten;
  }
  auto aggregated = Aggregated(statement, engine, no_aggregates);
  if (aggregated.ok()) {
    rewritten.sql = *std::move(aggregated);
  } else {
    rewritten.by_sqlite = aggregated.status().message();
  }
  return rewritten;
}

}  // namespace tamis
