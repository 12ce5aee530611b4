// For tests of SQL functions: the value of an expression.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace tamis::server {

// The type and the literal, such as "text 'a'"; or the error's message.
inline std::string ValueOf(sqlite3* db, const std::string& expression) {
  sqlite3_stmt* statement = nullptr;
  const std::string sql =
      "SELECT typeof(x) || ' ' || quote(x) FROM (SELECT " + expression + " AS x)";
  EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
  const bool has_row = sqlite3_step(statement) == SQLITE_ROW;
  std::string value = has_row ? reinterpret_cast<const char*>(sqlite3_column_text(statement, 0))
                              : sqlite3_errmsg(db);
  sqlite3_finalize(statement);
  return value;
}

}  // namespace tamis::server
