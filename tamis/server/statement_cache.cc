#include "tamis/server/statement_cache.h"

#include <algorithm>
#include <utility>

namespace tamis::server {

std::optional<StatementCache::Statement> StatementCache::Take(const std::string& sql, Time now,
                                                              const VersionOf& version_of) {
  const auto found = std::ranges::find(kept_, sql, &Statement::sql);
  if (found == kept_.end()) return std::nullopt;
  const auto is_unchanged = [&](const auto& table) {
    return version_of(table.first) == table.second;
  };
  const bool is_good =
      now - found->prepared < kMostAge && std::ranges::all_of(found->tables, is_unchanged);
  Statement statement = std::move(*found);
  kept_.erase(found);
  if (is_good) return statement;
  sqlite3_finalize(statement.handle);
  return std::nullopt;
}

void StatementCache::Put(Statement statement) {
  const bool fits =
      sqlite3_stmt_status(statement.handle, SQLITE_STMTSTATUS_MEMUSED, 0) <= kMostBytes;
  if (!fits) {
    sqlite3_finalize(statement.handle);
    return;
  }
  sqlite3_clear_bindings(statement.handle);
  if (kept_.size() == kMostStatements) {
    sqlite3_finalize(kept_.front().handle);
    kept_.erase(kept_.begin());
  }
  kept_.push_back(std::move(statement));
}

void StatementCache::Clear() {
  for (const Statement& statement : kept_) sqlite3_finalize(statement.handle);
  kept_.clear();
}

}  // namespace tamis::server
