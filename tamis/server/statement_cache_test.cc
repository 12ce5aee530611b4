#include "tamis/server/statement_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tamis/base/answers.h"
#include "tamis/server/sql_database.h"
#include "tamis/server/testing/tamis_server_test_case.h"

namespace tamis::server {
namespace {

class StatementCacheTest : public testing::Test {
 protected:
  StatementCacheTest() { EXPECT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK); }
  ~StatementCacheTest() override {
    cache_.Clear();
    EXPECT_EQ(sqlite3_close(db_), SQLITE_OK);  // each statement was finalized
  }

  sqlite3_stmt* Prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    return statement;
  }
  sqlite3_stmt* Put(const std::string& sql, std::map<std::string, TableVersion> tables = {}) {
    sqlite3_stmt* const statement = Prepare(sql);
    cache_.Put({.handle = statement, .sql = sql, .tables = std::move(tables)});
    return statement;
  }
  // Whether a statement is found; it is put back.
  bool Finds(const std::string& sql, Duration age = {}) {
    auto statement = cache_.Take(sql, Time{} + age, [this](const std::string& table) {
      const auto found = versions_.find(table);
      return found == versions_.end() ? std::nullopt : std::optional(found->second);
    });
    if (!statement.has_value()) return false;
    cache_.Put(*std::move(statement));
    return true;
  }

  sqlite3* db_ = nullptr;
  StatementCache cache_;
  std::map<std::string, TableVersion> versions_;
};

TEST_F(StatementCacheTest, StatementIsTakenByItsText) {
  sqlite3_stmt* const one = Put("SELECT 1");
  Put("SELECT 2");
  const auto none = [](const std::string&) { return std::optional<TableVersion>(); };
  EXPECT_FALSE(cache_.Take("SELECT 3", {}, none).has_value());
  const auto taken = cache_.Take("SELECT 1", {}, none);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->handle, one);
  EXPECT_FALSE(cache_.Take("SELECT 1", {}, none).has_value()) << "it is in use";
  sqlite3_finalize(one);
}

TEST_F(StatementCacheTest, StatementIsForgottenAfterSomeSeconds) {
  Put("SELECT 1");
  EXPECT_TRUE(Finds("SELECT 1", StatementCache::kMostAge - Duration(1)));
  EXPECT_FALSE(Finds("SELECT 1", StatementCache::kMostAge));
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(StatementCacheTest, StatementIsForgottenWhenATableChanges) {
  versions_ = {{"t", {1, 3}}, {"u", {2, 7}}};
  Put("SELECT 1", versions_);
  EXPECT_TRUE(Finds("SELECT 1"));
  versions_["u"] = {2, 8};
  EXPECT_FALSE(Finds("SELECT 1"));
  Put("SELECT 1", versions_);
  versions_["u"] = {5, 8};  // another table of the name
  EXPECT_FALSE(Finds("SELECT 1"));
  Put("SELECT 1", versions_);
  versions_.erase("t");
  EXPECT_FALSE(Finds("SELECT 1"));
}

TEST_F(StatementCacheTest, TheOldestStatementMakesRoom) {
  const auto sql = [](size_t i) { return "SELECT " + std::to_string(i); };
  for (size_t i = 0; i < StatementCache::kMostStatements; ++i) Put(sql(i));
  EXPECT_TRUE(Finds(sql(0)));  // and is now the youngest
  Put("SELECT 'new'");
  EXPECT_EQ(cache_.size(), StatementCache::kMostStatements);
  EXPECT_TRUE(Finds(sql(0)));
  EXPECT_FALSE(Finds(sql(1)));
}

TEST_F(StatementCacheTest, LargeStatementsAreNotKept) {
  std::string sql = "SELECT '";
  sql.append(StatementCache::kMostBytes, 'x').append("'");
  Put(sql);
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(StatementCacheTest, BoundValuesAreNotKept) {
  sqlite3_stmt* const statement = Prepare("SELECT ?");
  sqlite3_bind_int64(statement, 1, 5);
  cache_.Put({.handle = statement, .sql = "SELECT ?"});
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_type(statement, 0), SQLITE_NULL);
  sqlite3_reset(statement);
}

class KeptStatementsTest : public TamisServerTest {
 protected:
  // Runs the statement and says whether it had been kept. It may be kept for the next call.
  bool RunsKept(SqlDatabase* database, const std::string& sql) {
    const auto statement = database->Prepare(sql);
    EXPECT_TRUE(statement.ok()) << statement.status();
    const bool was_kept = sqlite3_stmt_status(*statement, SQLITE_STMTSTATUS_RUN, 0) > 0;
    while (sqlite3_step(*statement) == SQLITE_ROW) {
    }
    EXPECT_EQ(database->End(/*keep=*/true), SQLITE_OK);
    return was_kept;
  }
};

TEST_F(KeptStatementsTest, OnlyStatementsThatRunAsTheyAreWritten) {
  auto database = *SqlDatabase::Open(store_, /*may_write=*/true);
  const std::string insert = "INSERT INTO cities(name, people) VALUES ('a', 1)";
  EXPECT_FALSE(RunsKept(database.get(), insert));
  const std::string read = "SELECT area FROM cities WHERE people = 1";
  EXPECT_FALSE(RunsKept(database.get(), read));
  EXPECT_EQ(database->kept_statements(), 2u);
  database->session()->explained_regions = 10;
  EXPECT_FALSE(RunsKept(database.get(), read));
  database->session()->explained_regions = 0;
  // Servers compute it, by a text that depends on the table.
  const std::string rewritten = "SELECT sum(people) FROM cities";
  EXPECT_FALSE(RunsKept(database.get(), rewritten));
  EXPECT_EQ(database->kept_statements(), 2u);
}

TEST_F(KeptStatementsTest, StatementIsPreparedAnewWhenAnIndexIsMade) {
  auto database = *SqlDatabase::Open(store_, /*may_write=*/true);
  const std::string read = "SELECT name FROM cities WHERE area = 2.5";
  EXPECT_FALSE(RunsKept(database.get(), read));
  EXPECT_EQ(database->kept_statements(), 1u);
  const auto made = AwaitResult<TableSchema>(&store_->engine().executor(), {}, [&](auto done) {
    store_->admin().CreateIndex("cities", {.name = "by_area", .columns = {2}}, std::move(done));
  });
  ASSERT_TRUE(made.ok()) << made.status();
  while ((*store_->engine().Table("cities"))->indexes.size() < 2) std::this_thread::yield();
  EXPECT_FALSE(RunsKept(database.get(), read));
}

TEST_F(KeptStatementsTest, EachRunHasItsOwnValuesAndErrors) {
  Start();
  const auto insert = [&](const std::string& name) {
    return Sql({{"sql", "INSERT INTO cities(name) VALUES (?)"}, {"parameters", {name}}}).status;
  };
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_EQ(Rows("SELECT ? + 1", {j}), json({{j + 1}}));
    EXPECT_EQ(Sql({{"sql", "SELECT ? + 1"}}).status, 400) << "no value for the parameter";
    for (int j = 0; j < 3; ++j) EXPECT_EQ(insert(std::to_string(3 * i + j)), 200);
    EXPECT_EQ(insert("0"), 409);
  }
  EXPECT_EQ(Rows("SELECT count(*) FROM cities"), json({{9}}));
}

}  // namespace
}  // namespace tamis::server
