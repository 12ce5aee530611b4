#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

#include <gtest/gtest.h>

#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using Op = Predicate::Op;
using Kind = Predicate::Kind;

TEST(PredicateTest, ComparisonsWithNullAreUnknown) {
  const Row row = {Value(), Value::Int64(5)};
  const Predicate unknown = Predicate::Compare(0, Op::kEq, Value::Int64(1));
  const Predicate yes = Predicate::Compare(1, Op::kGe, Value::Int64(5));
  EXPECT_EQ(unknown.Evaluate(row), std::nullopt);
  EXPECT_EQ(Predicate::Not(unknown).Evaluate(row), std::nullopt);
  EXPECT_EQ(Predicate::Or({unknown, yes}).Evaluate(row), true);
  EXPECT_EQ(Predicate::And({unknown, yes}).Evaluate(row), std::nullopt);
  EXPECT_EQ(Predicate::And({unknown, Predicate::Not(yes)}).Evaluate(row), false);
  EXPECT_EQ(Predicate::Compare(1, Op::kEq, Value()).Evaluate(row), std::nullopt);
  EXPECT_EQ(Predicate::In(1, {Value::Int64(4), Value()}).Evaluate(row), std::nullopt);
  EXPECT_EQ(Predicate::In(1, {Value::Int64(5), Value()}).Evaluate(row), true);
  EXPECT_EQ(Predicate::In(0, {}).Evaluate(row), false);
  EXPECT_EQ(Predicate::In(1, {Value::Int64(9), Value::Int64(5), Value::Int64(1), Value::Int64(5)}),
            Predicate::In(1, {Value::Int64(1), Value::Int64(5), Value::Int64(9)}));
  EXPECT_EQ(Predicate::In(1, {Value::Int64(9), Value::Int64(5), Value::Int64(1)}).Evaluate(row),
            true);
  EXPECT_EQ(Predicate::In(1, {Value::Int64(9), Value::Int64(4), Value::Int64(6)}).Evaluate(row),
            false);
  EXPECT_EQ(Predicate::IsNull(0).Evaluate(row), true);
  EXPECT_EQ(Predicate::NotNull(0).Evaluate(row), false);
}

bool IsNormal(const Predicate& predicate) {
  if (predicate.kind == Kind::kNot) return false;
  for (const Predicate& child : predicate.children) {
    if (child.kind == predicate.kind || child.kind == Kind::kTrue || child.kind == Kind::kFalse ||
        !IsNormal(child)) {
      return false;
    }
  }
  return predicate.kind != Kind::kAnd && predicate.kind != Kind::kOr
             ? true
             : predicate.children.size() > 1;
}

TEST(PredicateTest, NormalizedKeepsTheTruth) {
  Random random(1);
  const TableSchema schema = SchemaOfAllTypes();
  int matches = 0;
  for (int i = 0; i < 20000; ++i) {
    const Predicate predicate = RandomPredicate(schema, random, 4);
    ASSERT_TRUE(predicate.Validate(schema).ok()) << predicate.Validate(schema);
    const Predicate normal = predicate.Normalized();
    ASSERT_TRUE(IsNormal(normal)) << normal.ToString(schema);
    ASSERT_TRUE(normal.Validate(schema).ok());
    ASSERT_EQ(normal.Normalized(), normal);
    for (int n = 0; n < 5; ++n) {
      const Row row = RandomRow(schema, random);
      ASSERT_EQ(predicate.Matches(row), normal.Matches(row)) << predicate.ToString(schema) << "\n"
                                                             << normal.ToString(schema);
      matches += normal.Matches(row);
    }
  }
  EXPECT_GT(matches, 20000);
  EXPECT_LT(matches, 80000);
}

TEST(PredicateTest, SerializedReadsBack) {
  Random random(2);
  const TableSchema schema = SchemaOfAllTypes();
  for (int i = 0; i < 5000; ++i) {
    const Predicate predicate = RandomPredicate(schema, random, 4);
    const auto back = ParsePredicate(SerializePredicate(predicate));
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(*back, predicate);
  }
}

TEST(PredicateTest, DepthIsBounded) {
  const TableSchema schema = SchemaOfAllTypes();
  Predicate predicate = Predicate::IsNull(1);
  for (int depth = 1; depth < 100; ++depth) predicate = Predicate::Not(std::move(predicate));
  EXPECT_TRUE(predicate.Validate(schema).ok());
  EXPECT_TRUE(ParsePredicate(SerializePredicate(predicate)).ok());
  predicate = Predicate::Not(Predicate::Not(std::move(predicate)));
  EXPECT_FALSE(predicate.Validate(schema).ok());
  EXPECT_FALSE(ParsePredicate(SerializePredicate(predicate)).ok());
}

TEST(PredicateTest, RefusesOtherTypesAndShapes) {
  const TableSchema schema = SchemaOfAllTypes();
  EXPECT_FALSE(Predicate::Compare(0, Op::kEq, Value::Int64(1)).Validate(schema).ok());
  EXPECT_FALSE(Predicate::Compare(99, Op::kEq, Value::Int64(1)).Validate(schema).ok());
  EXPECT_FALSE(Predicate::Prefix(2, "a").Validate(schema).ok());
  Predicate two = Predicate::Not(Predicate::True());
  two.children.push_back(Predicate::True());
  EXPECT_FALSE(two.Validate(schema).ok());
  EXPECT_FALSE(ParsePredicate(SerializePredicate(two)).ok());
  EXPECT_FALSE(ParsePredicate("\x08\x63").ok());
}

// A server that makes rows of index entries leaves out the columns that are not added.
TEST(PredicateTest, TheTruthFollowsFromTheColumnsThatAreAdded) {
  const TableSchema schema = SchemaOfAllTypes();
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 3000; ++i) {
    const Predicate predicate = RandomPredicate(schema, random, 3);
    std::vector<bool> columns(schema.columns.size());
    predicate.AddColumns(&columns);
    const Row row = RandomRow(schema, random);
    Row known = row;
    for (size_t c = 0; c < known.size(); ++c) {
      if (!columns[c]) known[c] = Value();
    }
    ASSERT_EQ(predicate.Evaluate(known), predicate.Evaluate(row)) << predicate.ToString(schema);
  }
}

TEST(PredicateTest, PrintsAsSql) {
  const TableSchema schema = SchemaOfAllTypes();
  const Predicate predicate = Predicate::And(
      {Predicate::Compare(0, Op::kEq, Value::Text("it's")),
       Predicate::Or({Predicate::Compare(2, Op::kGt, Value::Int64(1000)), Predicate::IsNull(1)}),
       Predicate::In(4, {Value::Bool(true), Value()}), Predicate::Prefix(0, "lib"),
       Predicate::Not(Predicate::NotNull(3))});
  EXPECT_EQ(predicate.ToString(schema),
            "c1 = 'it''s' AND (c3 > 1000 OR c2 IS NULL) AND c5 IN (NULL, true) AND "
            "c1 LIKE 'lib%' AND NOT (c4 IS NOT NULL)");
}

}  // namespace
}  // namespace tamis
