#include "tamis/sql/lower_query.h"

#include <gtest/gtest.h>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/testing/scripted_cluster.h"

namespace tamis {
namespace {

// A table t of (id, name, town, small = lower(name), start = substr(town, 1, 3)). The cluster has
// it under every name.
class LowerQueryTest : public testing::Test {
 protected:
  LowerQueryTest() {
    TableSchema& table = cluster_.table;
    table.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                     {.id = 2, .name = "name", .type = Type::kText},
                     {.id = 3, .name = "town", .type = Type::kText},
                     {.id = 4, .name = "small", .type = Type::kText},
                     {.id = 5, .name = "start", .type = Type::kText}};
    table.columns[3].expression = {.function = Expression::Function::kLower, .source = 1};
    table.columns[4].expression = {
        .function = Expression::Function::kSubstr, .source = 2, .length = 3};
    cluster_.Make(1, 10, {"a"});
    engine_ = std::make_unique<Engine>(&cluster_, &executor_,
                                       Engine::Options{.seed = 1, .polling = false});
  }
  ~LowerQueryTest() override { executor_.Clear(); }

  std::string Rewritten(const std::string& sql) {
    const auto statement = SelectStatement::Parse(sql);
    if (!statement.has_value()) return "as it is";
    return RewriteLower(*statement, engine_.get()).value_or("as it is");
  }
  void ExpectAsItIs(const std::string& sql) { EXPECT_EQ(Rewritten(sql), "as it is") << sql; }

  SimExecutor executor_{1, std::chrono::microseconds(10)};
  ScriptedCluster cluster_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(LowerQueryTest, ComparisonsWithTextsAreThoseOfTheComputedColumn) {
  EXPECT_EQ(Rewritten("SELECT id FROM t WHERE lower(name) = 'kim'"),
            "SELECT id FROM t WHERE `small` = 'kim'");
  EXPECT_EQ(Rewritten("select * from t where LOWER ( \"Name\" )=='kim' order by 1;"),
            "select * from t where `small`=='kim' order by 1;");
  EXPECT_EQ(Rewritten("SELECT id FROM t WHERE id > 1 AND (lower(name) IN ('a', 'b''c') OR "
                      "NOT lower(name) >= 'k') LIMIT 3"),
            "SELECT id FROM t WHERE id > 1 AND (`small` IN ('a', 'b''c') OR NOT `small` >= 'k') "
            "LIMIT 3");
  EXPECT_EQ(Rewritten("SELECT id FROM t WHERE lower(name) LIKE 'ki%' -- lower(name) = 'x'"),
            "SELECT id FROM t WHERE `small` LIKE 'ki%' -- lower(name) = 'x'");
}

TEST_F(LowerQueryTest, JoinedTablesAreToldByTheirNames) {
  EXPECT_EQ(
      Rewritten("SELECT a.id FROM t AS a LEFT JOIN t \"b c\" ON a.id = \"b c\".id AND "
                "lower(\"b c\".name) = 'kim' WHERE lower(A.name) = 'lee'"),
      "SELECT a.id FROM t AS a LEFT JOIN t \"b c\" ON a.id = \"b c\".id AND \"b c\".`small` = "
      "'kim' WHERE A.`small` = 'lee'");
  EXPECT_EQ(Rewritten("SELECT 1 FROM t, t b WHERE lower(t.name) = 'kim'"),
            "SELECT 1 FROM t, t b WHERE t.`small` = 'kim'");
  ExpectAsItIs("SELECT 1 FROM t a, t b WHERE lower(name) = 'kim'");
  ExpectAsItIs("SELECT 1 FROM t a, t b WHERE lower(t.name) = 'kim'");
  ExpectAsItIs("SELECT 1 FROM t a, t a WHERE lower(a.name) = 'kim'");
}

TEST_F(LowerQueryTest, OtherOperandsAndFunctionsStay) {
  for (const char* condition : {"lower(name) = 5",
                                "lower(name) = ?",
                                "lower(name) = id",
                                "lower(name) = x'6b'",
                                "lower(name) = 'a' || 'b'",
                                "lower(name) = 'a' COLLATE NOCASE",
                                "lower(name) IN ('a', 1)",
                                "lower(name) LIKE 'a' ESCAPE '!'",
                                "'a' || lower(name) = 'a'",
                                "id = lower(name) = 'a'",
                                "id BETWEEN 1 AND lower(name) = 'a'",
                                "lower(name) = 'a' = 1",
                                "lower(name) IS NULL",
                                "lower(town) = 'a'",
                                "lower(start) = 'a'",
                                "substr(town, 1, 3) = 'abc'",
                                "lower(name || 'x') = 'a'",
                                "town = 'lower(name) = ''a'''",
                                "lower(name) <> 'a'",
                                "my.lower(name) = 'a'",
                                "lower(upper(name)) = 'a'"}) {
    ExpectAsItIs("SELECT id FROM t WHERE " + std::string(condition));
  }
}

TEST_F(LowerQueryTest, StatementsWhoseNamesAreNotCertainStay) {
  for (const char* sql : {
           "SELECT lower(name) = 'a' FROM t",
           "DELETE FROM t WHERE lower(name) = 'a'",
           "EXPLAIN SELECT id FROM t WHERE lower(name) = 'a'",
           "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE lower(name) = 'a')",
           "SELECT id FROM (SELECT * FROM t) WHERE lower(name) = 'a'",
           "SELECT id FROM t WHERE lower(name) = 'a' UNION SELECT 1",
           "WITH t AS (SELECT 1 AS name) SELECT name FROM t WHERE lower(name) = 'a'",
           "SELECT id FROM main.t WHERE lower(name) = 'a'",
           "SELECT id FROM f(1) WHERE lower(name) = 'a'",
           "SELECT id FROM t GROUP BY id HAVING lower(name) = 'a'",
           "SELECT id FROM t WHERE lower(name) = 'a",
           "SELECT id FROM t WHERE",
           "SELECT lower FROM",
           "lower",
       }) {
    ExpectAsItIs(sql);
  }
}

}  // namespace
}  // namespace tamis
