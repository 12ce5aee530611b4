// RewriteQuery: a statement in the form in which servers do most of its work, where a program sees
// its text (minimum_query.h, lower_query.h, aggregate_query.h say which, and what that requires).
//
// Threads: a pure function, apart from the schemas that the engine may ask the cluster for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tamis/query/engine.h"

namespace tamis {

struct RewrittenQuery {
  std::optional<std::string> sql;  // nullopt: the statement is to be run as it is
  // Why SQLite computes aggregates that servers can compute; empty where it does not.
  std::string by_sqlite;
};

// `no_aggregates`: why RewriteAggregates may not be used; empty where it may.
RewrittenQuery RewriteQuery(std::string_view sql, Engine* engine,
                            std::string_view no_aggregates = "");

}  // namespace tamis
