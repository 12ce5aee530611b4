#include "tamis/sql/sql_name.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(QuotedNameTest, QuotesInsideAreDoubled) {
  EXPECT_EQ(QuotedName("orders"), "\"orders\"");
  EXPECT_EQ(QuotedName("a \"b\""), "\"a \"\"b\"\"\"");
  EXPECT_EQ(QuotedName(""), "\"\"");
}

// SQLite takes the affinity from the words in a declared type: TEXT, INT, BLOB, REAL; NUMERIC else.
TEST(SqlTypeTest, TypesHaveTheAffinityOfTheirValues) {
  EXPECT_EQ(SqlType(Type::kText), "TEXT");
  EXPECT_EQ(SqlType(Type::kBytes), "BLOB");
  EXPECT_EQ(SqlType(Type::kInt64), "INTEGER");
  EXPECT_EQ(SqlType(Type::kDouble), "REAL");
  EXPECT_EQ(SqlType(Type::kBool), "BOOLEAN");
  EXPECT_EQ(SqlType(Type::kTimestamp), "TIMESTAMP TEXT");
  EXPECT_EQ(SqlType(Type::kDecimal), "DECIMAL");
}

}  // namespace
}  // namespace tamis
