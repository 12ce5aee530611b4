#include "tamis/sql/select_statement.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(SelectStatementTest, EachClauseIsFound) {
  const auto statement = SelectStatement::Parse(
      "SELECT a, count(*) FROM T AS p WHERE b > 1 GROUP BY a HAVING c < 2 ORDER BY 2 LIMIT 3 ;");
  ASSERT_TRUE(statement.has_value());
  EXPECT_TRUE(statement->is_plain);
  ASSERT_EQ(statement->tables.size(), 1u);
  EXPECT_EQ(statement->tables[0].table, "t");
  EXPECT_EQ(statement->tables[0].name, "p");
  EXPECT_EQ(statement->Text(statement->shown), "a, count(*)");
  EXPECT_EQ(statement->Text(statement->from), "T AS p");
  EXPECT_EQ(statement->Text(statement->conditions), "T AS p WHERE b > 1");
  EXPECT_EQ(statement->Text(statement->where), "b > 1");
  EXPECT_EQ(statement->Text(statement->group_by), "a");
  EXPECT_EQ(statement->Text(statement->having), "c < 2");
  EXPECT_EQ(statement->Text(statement->order_by), "2");
  EXPECT_EQ(statement->Text(statement->limit), "3");
}

TEST(SelectStatementTest, JoinedTablesHaveTheirNames) {
  const auto statement =
      SelectStatement::Parse("SELECT 1 FROM t JOIN u x ON (t.a = x.a), v WHERE t.b = 1");
  ASSERT_TRUE(statement.has_value());
  EXPECT_FALSE(statement->is_plain);
  ASSERT_EQ(statement->tables.size(), 3u);
  EXPECT_EQ(statement->tables[1].name, "x");
  EXPECT_EQ(statement->tables[2].table, "v");
  EXPECT_EQ(statement->Text(statement->where), "t.b = 1");
}

TEST(SelectStatementTest, StatementsWithMoreAreNotPlain) {
  for (const char* sql :
       {"SELECT a FROM t WHERE", "SELECT a FROM t GROUP a", "SELECT a FROM t LIMIT",
        "SELECT a FROM t ORDER BY a GROUP BY a", "SELECT a FROM t WINDOW w AS ()",
        "SELECT a FROM t; x", "SELECT a FROM t u v", "SELECT a FROM t LEFT JOIN u"}) {
    const auto statement = SelectStatement::Parse(sql);
    EXPECT_FALSE(statement.has_value() && statement->is_plain) << sql;
  }
}

TEST(SelectStatementTest, OtherStatementsAreNone) {
  for (const char* sql :
       {"", "DELETE FROM t", "SELECT 1", "SELECT a FROM (SELECT 1)", "SELECT a FROM f(1)",
        "SELECT a FROM main.t", "SELECT a FROM t INDEXED BY i", "VALUES (1)", "SELECT a FROM",
        "WITH t AS (SELECT 1) SELECT a FROM t", "SELECT a FROM t, t", "SELECT 'a FROM t"}) {
    EXPECT_FALSE(SelectStatement::Parse(sql).has_value()) << sql;
  }
}

}  // namespace
}  // namespace tamis
