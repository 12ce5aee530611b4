// RewriteQuery: a statement in the form in which servers do most of its work, where a program sees
// its text (minimum_query.h, lower_query.h, count_query.h say which, and what that requires).
//
// Threads: a pure function, apart from the schemas that the engine may ask the cluster for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tamis/query/engine.h"

namespace tamis {

// nullopt: the statement is to be run as it is. `counts`: RewriteCount may be used.
std::optional<std::string> RewriteQuery(std::string_view sql, Engine* engine, bool counts);

}  // namespace tamis
