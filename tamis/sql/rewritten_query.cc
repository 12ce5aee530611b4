#include "tamis/sql/rewritten_query.h"

#include "tamis/sql/count_query.h"
#include "tamis/sql/lower_query.h"
#include "tamis/sql/minimum_query.h"

namespace tamis {

std::optional<std::string> RewriteQuery(std::string_view sql, Engine* engine, bool counts) {
  auto rewritten = RewriteMinimum(sql, engine);
  if (!rewritten.has_value()) rewritten = RewriteLower(sql, engine);
  if (!rewritten.has_value() && counts) rewritten = RewriteCount(sql, engine);
  return rewritten;
}

}  // namespace tamis
