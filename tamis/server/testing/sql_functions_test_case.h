// For tests of SQL functions: the value of an expression, and a database with functions of this
// server beside one of SQLite's own.
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

class SqlFunctionsTest : public testing::Test {
 protected:
  // `add` gives the functions to a database, and returns SQLite's result code.
  explicit SqlFunctionsTest(int (*add)(sqlite3*)) {
    sqlite3_open(":memory:", &ours_);
    sqlite3_open(":memory:", &theirs_);
    EXPECT_EQ(add(ours_), SQLITE_OK);
  }
  ~SqlFunctionsTest() override {
    sqlite3_close(ours_);
    sqlite3_close(theirs_);
  }

  sqlite3* ours_ = nullptr;
  sqlite3* theirs_ = nullptr;
};

}  // namespace tamis::server
