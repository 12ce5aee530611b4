// Which parts of a statement are sent down to the cluster, and which are left to SQLite: as EXPLAIN
// QUERY PLAN shows it.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/testing/scripted_cluster.h"
#include "tamis/sql/extension.h"

namespace tamis {
namespace {

// SQLite hands its own functions only to an extension's entry point.
std::shared_ptr<Session> opening;

int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;
  return Extend(db, api, std::exchange(opening, nullptr)).ok() ? SQLITE_OK : SQLITE_ERROR;
}

class SqlPlanTest : public testing::Test {
 protected:
  explicit SqlPlanTest(std::optional<Column> another = std::nullopt,
                       std::optional<IndexSpec> index = std::nullopt) {
    cluster_.table.columns = {{.id = 1, .name = "a", .type = Type::kInt64, .nullable = false},
                              {.id = 2, .name = "b", .type = Type::kText, .nullable = false},
                              {.id = 3, .name = "n", .type = Type::kInt64},
                              {.id = 4, .name = "s", .type = Type::kText},
                              {.id = 5, .name = "d", .type = Type::kDouble}};
    if (another.has_value()) cluster_.table.columns.push_back(*another);
    cluster_.table.key = {0, 1};
    cluster_.table.indexes = {{.id = 1, .name = "n", .columns = {2}}};
    if (index.has_value()) cluster_.table.indexes.push_back(*index);
    cluster_.regions.push_back({.id = RegionId(1), .name = "1", .epoch = 1, .table_id = 1});
    Engine::Options options;
    options.polling = false;
    options.seed = 1;
    auto session = std::make_shared<Session>();
    session->engine = std::make_shared<Engine>(&cluster_, &executor_, options);
    opening = session;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
    EXPECT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK) << sqlite3_errmsg(db_);
    sqlite3_exec(db_, "CREATE TABLE other (x INTEGER, y TEXT)", nullptr, nullptr, nullptr);
  }
  ~SqlPlanTest() override {
    sqlite3_close(db_);
    executor_.Clear();
  }

  // "a = ?, in key order", and " | sorted" when SQLite sorts the rows itself.
  std::string PlanOf(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    const std::string explain = "EXPLAIN QUERY PLAN " + sql;
    EXPECT_EQ(sqlite3_prepare_v2(db_, explain.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
    std::string plan;
    bool sorted = false;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      const std::string detail = reinterpret_cast<const char*>(sqlite3_column_text(statement, 3));
      const std::string mark = "VIRTUAL TABLE INDEX 0:";
      if (const size_t at = detail.find(mark); at != std::string::npos) {
        const size_t begin = at + mark.size();
        plan += (plan.empty() ? "" : " | ") + detail.substr(begin, detail.rfind(" #") - begin);
      }
      sorted |= detail.find("FOR ORDER BY") != std::string::npos;
    }
    sqlite3_finalize(statement);
    return plan + (sorted ? " | sorted" : "");
  }

  SimExecutor executor_{1, std::chrono::microseconds(10)};
  ScriptedCluster cluster_;
  sqlite3* db_ = nullptr;
};

TEST_F(SqlPlanTest, ConditionsOnColumnsGoDown) {
  for (const auto& [condition, plan] :
       std::vector<std::pair<const char*, const char*>>{{"n = 5", "n = ?"},
                                                        {"5 < n", "n > ?"},
                                                        {"n >= 1 AND n <= 5", "n >= ?, n <= ?"},
                                                        {"n BETWEEN 1 AND 5", "n >= ?, n <= ?"},
                                                        {"n IN (1, 2, 3)", "n IN ?"},
                                                        {"n IS NULL", "n IS NULL"},
                                                        {"n IS 5", "n IS ?"},
                                                        {"s = 'x'", "s = ?"},
                                                        {"s GLOB 'x*'", "s >= ?, s < ?"},
                                                        {"s LIKE '1x%'",
                                                         "s >= ? COLLATE NOCASE, "
                                                         "s < ? COLLATE NOCASE"},
                                                        {"s LIKE '1!%%' ESCAPE '!'",
                                                         "s >= ? COLLATE NOCASE, "
                                                         "s < ? COLLATE NOCASE"},
                                                        {"n >= '5'", "n >= ?"},
                                                        {"a = 1 AND b = 'x'", "a = ?, b = ?"},
                                                        {"n = 5 AND s = 'x'", "n = ?, s = ?"}}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a, n FROM t WHERE ") + condition), plan) << condition;
  }
}

TEST_F(SqlPlanTest, ConditionOnNoColumnStaysInSQLite) {
  for (const char* condition : {"n + 1 = 5", "abs(n) = 5", "n = d", "NOT s LIKE '1x%'",
                                "n = 5 OR s = 'x' || s", "s = 'x' COLLATE NOCASE", "n LIKE '5%'"}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a FROM t WHERE ") + condition), "all rows") << condition;
  }
}

// SQLite (3.40) offers these to the left table of a LEFT JOIN, too, which must not be narrowed.
TEST_F(SqlPlanTest, ConstraintsThatAnOnClauseMayHoldOfTheLeftTableStayUp) {
  for (const char* condition :
       {"n <> 5", "n IS NOT NULL", "n IS NOT 5", "s LIKE 'x%'", "s GLOB '*x'"}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a FROM t WHERE ") + condition), "all rows") << condition;
  }
}

class LowerCasePlanTest : public SqlPlanTest {
 protected:
  LowerCasePlanTest()
      : SqlPlanTest(Column{
            .id = 6,
            .name = "l",
            .type = Type::kText,
            .expression = Expression{.function = Expression::Function::kLower, .source = 3}}) {}
};

TEST_F(LowerCasePlanTest, ServesTheCollationNoCase) {
  for (const auto& [condition, plan] : std::vector<std::pair<const char*, const char*>>{
           {"s = 'X' COLLATE NOCASE", "l = lower(?)"},
           {"s = ?1 COLLATE NOCASE", "l = lower(?)"},
           {"s COLLATE NOCASE < 'x'", "l < lower(?)"},
           {"s COLLATE NOCASE IN ('x', 'y')", "l = lower(?)"},
           {"s LIKE 'Xy%'", "l >= lower(?), l < lower(?)"},
           {"s IS 'X' COLLATE NOCASE", "all rows"},
           {"b = 'X' COLLATE NOCASE", "all rows"},
           {"lower(s) = 'x'", "all rows"},
           {"l = 'x'", "l = ?"},
           {"tamis_key = x'00'", "tamis_key = ?"}}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a, n FROM t WHERE ") + condition), plan) << condition;
  }
  EXPECT_EQ(PlanOf("SELECT a FROM t LEFT JOIN other ON s = 'X' COLLATE NOCASE"), "all rows");
  EXPECT_EQ(PlanOf("SELECT a FROM other LEFT JOIN t ON s = y COLLATE NOCASE"), "l = lower(?)");
}

TEST_F(SqlPlanTest, RangesThatSqliteDerivesFromAPatternStayUpUnlessTheColumnIsText) {
  for (const char* condition : {"n LIKE 'xy%' ESCAPE '!'", "d GLOB 'I*'", "n LIKE 'xy%'"}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a FROM t WHERE ") + condition), "all rows") << condition;
  }
}

TEST_F(SqlPlanTest, PatternsOfAFunctionOfTheApplicationStayUp) {
  for (const char* name : {"like", "glob"}) {
    ASSERT_EQ(
        sqlite3_create_function(
            db_, name, 2, SQLITE_UTF8, nullptr,
            [](sqlite3_context* context, int, sqlite3_value**) { sqlite3_result_int(context, 1); },
            nullptr, nullptr),
        SQLITE_OK);
  }
  EXPECT_EQ(PlanOf("SELECT a FROM t WHERE s LIKE '1x%'"), "all rows");
  EXPECT_EQ(PlanOf("SELECT a FROM t WHERE s GLOB 'x*'"), "all rows");
}

TEST_F(SqlPlanTest, ACaseSensitiveLikeIsARangeByBytes) {
  sqlite3_exec(db_, "PRAGMA case_sensitive_like = ON", nullptr, nullptr, nullptr);
  EXPECT_EQ(PlanOf("SELECT a FROM t WHERE s LIKE 'x%'"), "s >= ?, s < ?");
}

TEST_F(SqlPlanTest, KeyOrderIsGivenWhereTheKeyIsInTheOrderOfItsValues) {
  for (const auto& [rest, plan] : std::vector<std::pair<const char*, const char*>>{
           {"ORDER BY a", "all rows, in key order"},
           {"ORDER BY a, b", "all rows, in key order"},
           {"ORDER BY a DESC", "all rows, in the order of a DESC"},
           {"ORDER BY a DESC, b DESC LIMIT 3", "LIMIT ?, in the order of a DESC, b DESC"},
           {"ORDER BY a DESC, b", "all rows | sorted"},
           {"ORDER BY b DESC", "all rows | sorted"},
           {"WHERE a = 1 ORDER BY b DESC", "a = ?, in the order of b DESC"},
           {"WHERE a < 9 ORDER BY a DESC", "a < ?, in the order of a DESC"},
           {"WHERE a = 1 ORDER BY a DESC", "a = ?"},
           {"WHERE a = 1 ORDER BY a DESC LIMIT 3", "a = ?, LIMIT ?"},
           {"WHERE a = 1 ORDER BY a DESC, b", "a = ?, in key order"},
           {"WHERE a = 1 ORDER BY a, b DESC", "a = ?, in the order of a, b DESC"},
           {"WHERE a IS 1 ORDER BY a DESC", "a IS ?"},
           {"WHERE n > 1 ORDER BY a DESC", "n > ? | sorted"},
           {"WHERE n = 1 ORDER BY a DESC", "n = ?, in the order of a DESC"},
           {"ORDER BY b", "all rows | sorted"},
           {"ORDER BY a, n", "all rows | sorted"},
           {"WHERE a = 1 ORDER BY b", "a = ?, in key order"},
           {"WHERE a = 1 ORDER BY a, b", "a = ?, in key order"},
           {"WHERE n = 1 ORDER BY n, a", "n = ?, in key order"},
           {"WHERE n = 1 ORDER BY n, b", "n = ? | sorted"},
           {"WHERE a > 1 ORDER BY b", "a > ? | sorted"},
           {"WHERE b = 'x' ORDER BY a", "b = ?, in key order"},
           {"WHERE a IN (1, 2) ORDER BY b", "a IN ? | sorted"}}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a, n FROM t ") + rest), plan) << rest;
  }
}

TEST_F(SqlPlanTest, AnOrderOfHeldColumnsIsAnyOrder) {
  for (const auto& [sql, plan] : std::vector<std::pair<const char*, const char*>>{
           {"SELECT a, n FROM t WHERE n = 1 ORDER BY n", "n = ?"},
           {"SELECT a, n FROM t WHERE n = 1 ORDER BY n DESC LIMIT 3", "n = ?, LIMIT ?"},
           {"SELECT a, n FROM t WHERE n IS NULL AND s = 'x' ORDER BY s DESC, n",
            "n IS NULL, s = ?"},
           {"SELECT DISTINCT a FROM t WHERE a = 1", "a = ?"},
           {"SELECT DISTINCT n FROM t WHERE n = 1", "n = ?, equal rows once"},
           {"SELECT DISTINCT n FROM t WHERE n = 1 ORDER BY n", "n = ?, equal rows once"},
           {"SELECT n, count(*) FROM t WHERE n = 1 GROUP BY n", "n = ?, equal rows counted"},
           {"SELECT n, group_concat(a) FROM t WHERE n = 1 GROUP BY n", "n = ?"},
           // These have several values: 1 may be '1' or '1.0'.
           {"SELECT a FROM t WHERE n IN (1, 2) ORDER BY n", "n IN ?, in the order of n"},
           {"SELECT a, s FROM t WHERE s = 1 ORDER BY s", "s = ? | sorted"},
           {"SELECT a, s FROM t WHERE s = 'x' COLLATE NOCASE ORDER BY s", "all rows | sorted"}}) {
    EXPECT_EQ(PlanOf(sql), plan) << sql;
  }
}

TEST_F(SqlPlanTest, RowsThatAnIndexFindsOutOfKeyOrderAreSorted) {
  for (const auto& [rest, plan] : std::vector<std::pair<const char*, const char*>>{
           {"WHERE n > 1 ORDER BY a", "n > ? | sorted"},
           {"WHERE n IN (1, 2) ORDER BY a, b LIMIT 3", "n IN ? | sorted"},
           {"WHERE n IN (1, 2) ORDER BY a", "n IN ? | sorted"},
           {"WHERE a > 1 AND n > 1 ORDER BY a", "a > ?, n > ? | sorted"},
           {"WHERE n > 1 AND s = 'x' ORDER BY s, a", "n > ?, s = ? | sorted"},
           // A scan that ends early, entries of one value, few keys, conditions without an index.
           {"WHERE n > 1 ORDER BY a, b LIMIT 3", "n > ?, LIMIT ?, in key order"},
           {"WHERE n = 1 ORDER BY a", "n = ?, in key order"},
           {"WHERE n IS NULL ORDER BY a", "n IS NULL, in key order"},
           {"WHERE a = 1 AND n > 1 ORDER BY b", "a = ?, n > ?, in key order"},
           {"WHERE a > 1 AND d > 1 ORDER BY a", "a > ?, d > ?, in key order"},
           {"WHERE tamis_key = x'00' AND n > 1 ORDER BY a", "tamis_key = ?, n > ?, in key order"},
           {"WHERE n + 1 > 1 ORDER BY a", "all rows, in key order"}}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a, n FROM t ") + rest), plan) << rest;
  }
}

class WiderIndexPlanTest : public SqlPlanTest {
 protected:
  explicit WiderIndexPlanTest(Predicate where = Predicate::True())
      : SqlPlanTest(
            std::nullopt,
            IndexSpec{.id = 2, .name = "s_d", .columns = {3, 4}, .where = std::move(where)}) {}
};

TEST_F(WiderIndexPlanTest, EntriesOfItsFirstColumnAloneAreNotInKeyOrder) {
  for (const auto& [rest, plan] : std::vector<std::pair<const char*, const char*>>{
           {"WHERE s = 'x' ORDER BY a", "s = ? | sorted"},
           {"WHERE s = 'x' AND d > 1 ORDER BY a", "s = ?, d > ? | sorted"},
           {"WHERE s IS 'x' ORDER BY a LIMIT 3", "s IS ? | sorted"},
           {"WHERE s = 'x' AND d = 1 ORDER BY a", "s = ?, d = ?, in key order"},
           {"WHERE s = 'x' AND n = 1 ORDER BY a", "s = ?, n = ?, in key order"},
           {"WHERE s = 'x' ORDER BY s, d", "s = ?, in the order of s, d"},
           {"WHERE s = 'x' AND d < 1 ORDER BY s", "s = ?, d < ?"},
           {"WHERE d = 1 ORDER BY a", "d = ?, in key order"}}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a, n FROM t ") + rest), plan) << rest;
  }
}

class PartialIndexPlanTest : public WiderIndexPlanTest {
 protected:
  PartialIndexPlanTest() : WiderIndexPlanTest(Predicate::NotNull(2)) {}
};

TEST_F(PartialIndexPlanTest, KeyOrderIsLostOnlyIfTheIndexMayHaveTheRows) {
  for (const auto& [rest, plan] : std::vector<std::pair<const char*, const char*>>{
           {"WHERE s = 'x' ORDER BY a", "s = ?, in key order"},
           {"WHERE s = 'x' AND n > 1 ORDER BY a", "s = ?, n > ? | sorted"},
           {"WHERE s = 'x' AND d = 1 AND n > 1 ORDER BY a", "s = ?, d = ?, n > ? | sorted"}}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a, n FROM t ") + rest), plan) << rest;
  }
}

TEST_F(SqlPlanTest, AnOrderThatAnIndexGivesGoesDown) {
  for (const auto& [rest, plan] : std::vector<std::pair<const char*, const char*>>{
           {"ORDER BY n", "all rows, in the order of n"},
           {"ORDER BY n DESC", "all rows, in the order of n DESC"},
           {"ORDER BY n DESC NULLS LAST", "all rows, in the order of n DESC"},
           {"ORDER BY n NULLS LAST", "all rows | sorted"},
           {"ORDER BY n, a, b", "all rows, in the order of n, a, b"},
           {"ORDER BY n, a DESC", "all rows | sorted"},
           {"ORDER BY n, s", "all rows | sorted"},
           {"ORDER BY +n", "all rows | sorted"},
           {"ORDER BY s COLLATE NOCASE", "all rows | sorted"},
           {"ORDER BY d", "all rows | sorted"},
           {"WHERE s = 'x' ORDER BY s, n", "s = ?, in the order of s, n"},
           {"WHERE n > 5 ORDER BY n LIMIT 3", "n > ?, LIMIT ?, in the order of n"},
           {"ORDER BY n DESC LIMIT 3 OFFSET 2", "LIMIT ?, OFFSET ?, in the order of n DESC"},
           {"WHERE n IS NOT NULL ORDER BY n LIMIT 1", "all rows, in the order of n"},
           {"WHERE n IN (3, 1) ORDER BY n", "n IN ?, in the order of n"}}) {
    EXPECT_EQ(PlanOf(std::string("SELECT a, s FROM t ") + rest), plan) << rest;
  }
  EXPECT_EQ(PlanOf("SELECT max(n) FROM t"), "all rows, in the order of n DESC");
  EXPECT_EQ(PlanOf("SELECT min(n) FROM t"), "all rows, equal rows counted")
      << "SQLite asks for no order";
}

TEST_F(SqlPlanTest, GroupsArePutIntoTheOrderOfAnIndex) {
  EXPECT_EQ(PlanOf("SELECT n, count(*) FROM t GROUP BY n"),
            "all rows, equal rows counted, in the order of n");
  EXPECT_EQ(PlanOf("SELECT n, count(*) FROM t GROUP BY n ORDER BY n DESC"),
            "all rows, equal rows counted, in the order of n DESC");
  EXPECT_EQ(PlanOf("SELECT DISTINCT n FROM t ORDER BY n"),
            "all rows, equal rows once, in the order of n");
  // SQLite drops duplicates of rows in any order.
  EXPECT_EQ(PlanOf("SELECT DISTINCT n FROM t"), "all rows, equal rows once");
  // Neither can come as groups.
  EXPECT_EQ(PlanOf("SELECT n, sum(a) FROM t GROUP BY n"), "all rows");
  EXPECT_EQ(PlanOf("SELECT n, count(*) FROM t GROUP BY n COLLATE NOCASE").find("in the order"),
            std::string::npos);
}

TEST_F(SqlPlanTest, ALimitGoesDownOnlyWhereNothingIsLeftToDoAbove) {
  for (const auto& [rest, plan] : std::vector<std::pair<const char*, const char*>>{
           {"LIMIT 3", "LIMIT ?"},
           {"WHERE n = 5 LIMIT 3", "n = ?, LIMIT ?"},
           {"WHERE n = 5 LIMIT 3 OFFSET 2", "n = ?, LIMIT ?, OFFSET ?"},
           {"WHERE n = 5 ORDER BY a LIMIT 3", "n = ?, in key order, LIMIT ?"},
           {"WHERE s LIKE '1x%' LIMIT 3", "s >= ? COLLATE NOCASE, s < ? COLLATE NOCASE"},
           {"WHERE n + 1 = 5 LIMIT 3", "all rows"},
           {"ORDER BY s LIMIT 3", "all rows | sorted"}}) {
    std::string shown = PlanOf(std::string("SELECT a, n FROM t ") + rest);
    // The order is stated after all terms.
    if (const size_t at = shown.find(", LIMIT ?, in key order"); at != std::string::npos) {
      shown = shown.substr(0, at) + ", in key order, LIMIT ?";
    }
    EXPECT_EQ(shown, plan) << rest;
  }
}

TEST_F(SqlPlanTest, AJoinAsksByIndexForEachRowOfTheOther) {
  EXPECT_EQ(PlanOf("SELECT t.a FROM other CROSS JOIN t ON t.n = other.x"), "n = ?");
  EXPECT_EQ(PlanOf("SELECT t.s FROM other CROSS JOIN t ON t.a = other.x AND t.b = other.y"),
            "a = ?, b = ?");
}

TEST_F(SqlPlanTest, RowsAreCountedWhereNoKeyIsUsed) {
  const std::string counted = "all rows, equal rows counted";
  EXPECT_EQ(PlanOf("SELECT count(*) FROM t"), counted);
  EXPECT_EQ(PlanOf("SELECT s, count(*) FROM t GROUP BY s"), counted);
  EXPECT_EQ(PlanOf("SELECT n, s FROM t"), counted);
  EXPECT_EQ(PlanOf("SELECT count(b) FROM t"), "all rows");
  EXPECT_EQ(PlanOf("SELECT count(*) FROM t WHERE a > 1"), "a > ?");
  EXPECT_EQ(PlanOf("SELECT n, tamis_key FROM t"), "all rows");
}

TEST_F(SqlPlanTest, AWholeKeyIsOneRow) {
  // SQLite begins with what it believes to be one row.
  EXPECT_EQ(PlanOf("SELECT 1 FROM t AS many, t AS one "
                   "WHERE many.n = one.n AND one.a = 1 AND one.b = 'x'"),
            "a = ?, b = ? | n = ?, equal rows counted");
}

}  // namespace
}  // namespace tamis
