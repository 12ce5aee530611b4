#include "tamis/table/condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tamis/table/definition.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using testing::HasSubstr;

TableSchema Orders() {
  auto schema = ParseDefinition(
      "orders", {"id int64", "status text", "total decimal", "weight double", "note bytes",
                 "paid bool", "due timestamp", "n int64", "key (id)"});
  EXPECT_TRUE(schema.ok()) << schema.status();
  return *schema;
}

std::string Read(const std::string& text) {
  const TableSchema schema = Orders();
  const auto condition = ParseCondition(schema, text);
  if (!condition.ok()) return condition.status().message();
  EXPECT_TRUE(condition->Validate(schema).ok());
  return condition->ToString(schema);
}

TEST(ConditionTest, ReadsTheSqlOfConditions) {
  EXPECT_EQ(Read("status = 'open'"), "status = 'open'");
  EXPECT_EQ(Read("STATUS<>'it''s' and N>=-5"), "status <> 'it''s' AND n >= -5");
  EXPECT_EQ(Read("n != 1 OR n == 2 AND paid = true"), "n <> 1 OR n = 2 AND paid = true");
  EXPECT_EQ(Read("(n < 1 or n > 2) and not (paid = 0)"), "(n < 1 OR n > 2) AND NOT (paid = false)");
  EXPECT_EQ(Read("total between 1.50 and 2e3"), "total >= 1.5 AND total <= 2000");
  EXPECT_EQ(Read("weight > 0.1 and n not in (3, 1, null)"),
            "weight > 0.1 AND NOT (n IN (NULL, 1, 3))");
  EXPECT_EQ(Read("note = x'00Ff' and note is not null and status is null"),
            "note = x'00ff' AND note IS NOT NULL AND status IS NULL");
  EXPECT_EQ(Read("status like 'de-%'"), "status LIKE 'de-%'");
  EXPECT_EQ(Read("due >= '2026-01-02 03:04:05'"), "due >= '2026-01-02T03:04:05Z'");
  EXPECT_EQ(Read("n > 2.5"), "n > 2");  // the same for whole numbers
  EXPECT_EQ(Read("\"status\" = ''"), "status = ''");
}

TEST(ConditionTest, InOfValuesThatTheColumnCannotHaveIsUnknownOfNull) {
  const TableSchema schema = Orders();
  Row null(schema.columns.size()), other(schema.columns.size());
  other[*schema.FindColumn("n")] = Value::Int64(2);
  other[*schema.FindColumn("paid")] = Value::Bool(true);
  other[*schema.FindColumn("weight")] = *Value::Double(1);
  for (const std::string of : {"n in (2.5)", "n in (2.5, 1e30, -7.5)", "paid in (2)",
                               "paid in (0.5, 7)", "weight in (9e999)", "weight in (1e400)"}) {
    for (const std::string& text : {of, "not (" + of + ")", "not " + of}) {
      const auto condition = ParseCondition(schema, text);
      ASSERT_TRUE(condition.ok()) << condition.status();
      // The stored condition of an index is read again from its text or its bytes.
      const auto back = ParseCondition(schema, condition->ToString(schema));
      ASSERT_TRUE(back.ok()) << back.status();
      for (const Predicate& predicate : {*condition, condition->Normalized(), *back}) {
        EXPECT_FALSE(predicate.Matches(null)) << text;
        EXPECT_EQ(predicate.Matches(other), text != of) << text;
      }
    }
  }
  // SQLite's IN () is false of NULL as well.
  for (const char* text : {"n not in ()", "not n in ()"}) {
    EXPECT_TRUE(ParseCondition(schema, text)->Matches(null)) << text;
  }
  EXPECT_EQ(Read("n in (2.5, 3)"), "n IN (3)");
  EXPECT_EQ(Read("n not in (2.5, null)"), "NOT (n IN (NULL))");
}

TEST(ConditionTest, SaysWhatCannotBeRead) {
  EXPECT_THAT(Read("state = 'open'"), HasSubstr("table \"orders\" has no column \"state\""));
  EXPECT_THAT(Read("status = open"), HasSubstr("compares with 'text', not with open"));
  EXPECT_THAT(Read("status ="), HasSubstr("a value is missing before the end"));
  EXPECT_THAT(Read("status"), HasSubstr("an operator is missing behind column \"status\""));
  EXPECT_THAT(Read("(n = 1"), HasSubstr("closing parenthesis is missing"));
  EXPECT_THAT(Read("n = 1 n = 2"), HasSubstr("\"n\" is not understood"));
  EXPECT_THAT(Read("n = 'x'"), HasSubstr("of type int64 does not compare with x"));
  EXPECT_THAT(Read("status like '%x'"), HasSubstr("is no prefix"));
  EXPECT_THAT(Read("n like '1%'"), HasSubstr("LIKE is for text and bytes"));
  EXPECT_THAT(Read("note = x'0'"), HasSubstr("not hexadecimal"));
  EXPECT_THAT(Read(""), HasSubstr("a column is missing before the end"));
  EXPECT_THAT(Read("'a' = status"), HasSubstr("a column is missing"));
  EXPECT_THAT(Read(std::string(1000, '(')), HasSubstr("deep"));
}

TEST(ConditionTest, ReadsWhatPredicatesSayOfThemselves) {
  const TableSchema schema = SchemaOfAllTypes();
  Random random(1);
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    const Predicate predicate = RandomPredicate(schema, random, 3);
    const std::string text = predicate.ToString(schema);
    const auto back = ParseCondition(schema, text);
    if (!back.ok()) {  // % and _ of a prefix, which LIKE takes for patterns
      EXPECT_THAT(back.status().message(), HasSubstr("LIKE")) << text;
      continue;
    }
    ++read;
    EXPECT_EQ(back->Normalized(), predicate.Normalized()) << text;
  }
  EXPECT_GT(read, 1000);
}

TEST(ConditionTest, ConditionIsReadAmongTheOptionsOfAnIndex) {
  const auto schema = ParseDefinition(
      "t", {"id int64", "index a (a) where b = 'x' and (id > 5 or a is null) fpr 0.01", "a text",
            "b text", "key (id)"});
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_THAT(schema->ToString(), HasSubstr("index a (a) fpr 0.01 expected_values 10000 where b = "
                                            "'x' AND (id > 5 OR a IS NULL)"));
  const auto back = ParseSchema(SerializeSchema(*schema));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->indexes[0].where, schema->indexes[0].where);
}

}  // namespace
}  // namespace tamis
