#include "tamis/query/plan.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/table/testing/random_keys.h"

namespace tamis {
namespace {

using Op = Predicate::Op;
using Kind = RoutingTerm::Kind;

Predicate Equal(uint32_t column, int64_t n) {
  return Predicate::Compare(column, Op::kEq, Value::Int64(n));
}

// Columns id (key), a, b, c; sparse indexes on (a) and (b, a), a whole one on (b).
TableSchema Sparse() {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                    {.id = 2, .name = "a", .type = Type::kInt64},
                    {.id = 3, .name = "b", .type = Type::kInt64},
                    {.id = 4, .name = "c", .type = Type::kInt64}};
  schema.next_column_id = 5;
  schema.key = {0};
  schema.indexes = {{.id = 1, .name = "a", .columns = {1}, .nulls = IndexNulls::kSkip},
                    {.id = 2, .name = "b_a", .columns = {2, 1}, .nulls = IndexNulls::kSkip},
                    {.id = 3, .name = "b", .columns = {2}}};
  schema.next_index_id = 4;
  return schema;
}

bool Asks(const RoutingTerm& term, uint32_t index_id) {
  return ((term.kind == Kind::kValue || term.kind == Kind::kRange) && term.index_id == index_id) ||
         std::ranges::any_of(term.children,
                             [&](const RoutingTerm& child) { return Asks(child, index_id); });
}

bool Walks(const Plan& plan, uint32_t index_id) {
  return std::ranges::any_of(plan.branches, [&](const pb::Branch& branch) {
    return std::ranges::any_of(branch.streams(), [&](const pb::IndexStream& stream) {
      return stream.index_id() == index_id;
    });
  });
}

TEST(PlanTest, ASparseIndexIsNotAskedForWhatNullCanSatisfy) {
  const TableSchema schema = Sparse();
  ASSERT_TRUE(schema.Validate().ok());
  const Predicate null = Predicate::IsNull(1);
  // The rule has an owner: without it the index is asked.
  for (const Predicate& p :
       {null, Predicate::Not(Predicate::NotNull(1)), Predicate::And({null, Equal(2, 5)})}) {
    SCOPED_TRACE(p.ToString(schema));
    const Plan plan = MakePlan(schema, p, {});
    EXPECT_FALSE(Asks(plan.routing, 1));
    EXPECT_FALSE(Walks(plan, 1));
    EXPECT_TRUE(Asks(MakePlan(schema, p, {.sparse_as_whole = true}).routing, 1));
  }
  // An alternative may be asked of the filter, since the other one says "anywhere"; but the index
  // does not find the rows of the other one.
  const Predicate either = Predicate::Or({null, Equal(1, 5)});
  EXPECT_FALSE(Walks(MakePlan(schema, either, {}), 1));
  EXPECT_TRUE(Walks(MakePlan(schema, either, {.sparse_as_whole = true}), 1));
  EXPECT_FALSE(Walks(MakePlan(schema, Predicate::And({either, Equal(2, 5)}), {}), 1));
  const Plan both = MakePlan(schema, Predicate::And({null, Equal(2, 5)}), {});
  EXPECT_FALSE(Asks(both.routing, 1));
  EXPECT_FALSE(Walks(both, 1));
  EXPECT_TRUE(Asks(both.routing, 2));  // its second column may be NULL
  EXPECT_TRUE(Asks(both.routing, 3));
  const Plan b_null = MakePlan(schema, Predicate::IsNull(2), {});
  EXPECT_FALSE(Asks(b_null.routing, 2));
  EXPECT_TRUE(Asks(b_null.routing, 3));
  EXPECT_TRUE(Walks(b_null, 3));
}

TEST(PlanTest, ASparseIndexIsAskedForValues) {
  const TableSchema schema = Sparse();
  for (const Predicate& p : {Equal(1, 5), Predicate::Compare(1, Op::kLt, Value::Int64(5)),
                             Predicate::In(1, {Value(), Value::Int64(1), Value::Int64(2)}),
                             Predicate::Or({Equal(1, 5), Equal(1, 6)})}) {
    SCOPED_TRACE(p.ToString(schema));
    const Plan plan = MakePlan(schema, p, {});
    EXPECT_TRUE(Asks(plan.routing, 1));
    EXPECT_TRUE(Walks(plan, 1));
  }
}

// ---- Partial indexes

// An index on a where b > 10.
TableSchema Partial() {
  TableSchema schema = Sparse();
  schema.indexes = {{.id = 1,
                     .name = "a_big",
                     .columns = {1},
                     .where = Predicate::Compare(2, Op::kGt, Value::Int64(10))}};
  return schema;
}

TEST(PlanTest, APartialIndexIsUsedWhereItsConditionIsImplied) {
  const TableSchema schema = Partial();
  const Predicate above = Predicate::Compare(2, Op::kGt, Value::Int64(20));
  for (const Predicate& p :
       {Predicate::And({Equal(1, 5), above}), Predicate::And({Equal(1, 5), Equal(2, 11)}),
        Predicate::And({above, Predicate::Or({Equal(1, 5), Equal(1, 6)})})}) {
    SCOPED_TRACE(p.ToString(schema));
    const Plan plan = MakePlan(schema, p, {});
    EXPECT_TRUE(Asks(plan.routing, 1));
    EXPECT_TRUE(Walks(plan, 1));
    EXPECT_EQ(plan.reason.find("not used"), std::string::npos) << plan.reason;
  }
}

TEST(PlanTest, APartialIndexIsNotUsedElsewhereAndTheReasonSaysWhy) {
  const TableSchema schema = Partial();
  for (const Predicate& p :
       {Equal(1, 5), Predicate::And({Equal(1, 5), Predicate::NotNull(2)}),
        Predicate::And({Equal(1, 5), Predicate::Compare(2, Op::kGt, Value::Int64(9))})}) {
    SCOPED_TRACE(p.ToString(schema));
    const Plan plan = MakePlan(schema, p, {});
    EXPECT_FALSE(Asks(plan.routing, 1));
    EXPECT_FALSE(Walks(plan, 1));
    EXPECT_EQ(plan.reason,
              "no index helps: all rows are scanned; index a_big is not used, since the condition "
              "does not imply b > 10");
    const Plan faulty = MakePlan(schema, p, {.conditions_of_streams_only = true});
    EXPECT_TRUE(Asks(faulty.routing, 1));
    EXPECT_FALSE(Walks(faulty, 1));
  }
  // Its condition alone gives it nothing to look up.
  EXPECT_EQ(MakePlan(schema, Predicate::Compare(2, Op::kGt, Value::Int64(20)), {}).reason,
            "no index helps: all rows are scanned");
}

TEST(PlanTest, APartialIndexIsPreferredToOneOfTheSameColumns) {
  TableSchema schema = Partial();
  schema.indexes.push_back({.id = 2, .name = "a", .columns = {1}});
  const auto index_of = [&](const Predicate& p) { return MakePlan(schema, p, {}).index; };
  EXPECT_EQ(index_of(Predicate::And({Equal(1, 5), Equal(2, 30)})), "a_big");
  EXPECT_EQ(index_of(Equal(1, 5)), "a");
}

TEST(PlanTest, APartialIndexGivesTheOrderOfItsRowsAlone) {
  const TableSchema schema = Partial();
  const PlanOptions by_a{.order = {{.column = 1}}};
  EXPECT_FALSE(MakePlan(schema, Predicate::True(), by_a).order.has_value());
  EXPECT_TRUE(MakePlan(schema, Equal(2, 30), by_a).order.has_value());
}

// The ids of the indexes of a branch's streams.
std::vector<uint32_t> Streams(const pb::Branch& branch) {
  std::vector<uint32_t> ids;
  for (const pb::IndexStream& stream : branch.streams()) ids.push_back(stream.index_id());
  return ids;
}

using Ids = std::vector<uint32_t>;

// Columns id (key), a, b, c; indexes on (a), (b, a) and (b).
TEST(PlanTest, AStreamThatAnotherOneCoversIsLeftOut) {
  const TableSchema schema = Sparse();
  const Predicate below = Predicate::Compare(2, Op::kLt, Value::Int64(3));
  const auto streams_of = [&](const Predicate& p) {
    const Plan plan = MakePlan(schema, p, {});
    EXPECT_EQ(plan.branches.size(), 1u);
    return Streams(plan.branches[0]);
  };
  // An index on both columns serves both conditions.
  EXPECT_EQ(streams_of(Predicate::And({Equal(1, 5), Equal(2, 6)})), Ids{2});
  // An index whose entries are in the order of row keys is preferred; else the older index.
  EXPECT_EQ(streams_of(Equal(2, 6)), Ids{3});
  EXPECT_EQ(streams_of(below), Ids{2});
  // Neither covers the other: the region has the choice.
  EXPECT_EQ(streams_of(Predicate::And({Equal(1, 5), below})), (Ids{1, 2}));
  EXPECT_EQ(streams_of(Equal(0, 6)), Ids{});
}

TEST(PlanTest, StreamThatGivesTheRowsIsPreferred) {
  const TableSchema schema = Sparse();
  const auto streams_of = [&](const Predicate& p, std::vector<uint32_t> columns) {
    return Streams(MakePlan(schema, p, {.columns = std::move(columns)}).branches[0]);
  };
  EXPECT_EQ(streams_of(Equal(2, 6), {0, 1}), Ids{2});     // (b, a) has both
  EXPECT_EQ(streams_of(Equal(2, 6), {0, 1, 3}), Ids{3});  // neither has c
  EXPECT_EQ(streams_of(Equal(2, 6), {}), Ids{3});         // both have all
  EXPECT_EQ(streams_of(Predicate::And({Equal(2, 6), Predicate::Not(Equal(1, 2))}), {}), Ids{2});
}

TEST(PlanTest, RowsAreCountedByTheShortestIndexWithAnEntryOfEach) {
  TableSchema schema = Sparse();
  schema.columns[2].type = Type::kText;
  schema.indexes.push_back({.id = 4, .name = "c_b", .columns = {3, 2}});
  const auto streams_of = [&](const Predicate& p, std::vector<uint32_t> columns) {
    return Streams(
        MakePlan(schema, p, {.columns = std::move(columns), .groups = true}).branches[0]);
  };
  EXPECT_EQ(streams_of(Predicate::True(), {}), Ids{3});
  EXPECT_EQ(streams_of(Predicate::True(), {2}), Ids{3});
  EXPECT_EQ(streams_of(Predicate::True(), {3}), Ids{4});
  EXPECT_EQ(streams_of(Predicate::Not(Equal(3, 2)), {}), Ids{4});  // the condition needs c, too
  EXPECT_EQ(streams_of(Predicate::True(), {1}), Ids{});  // its indexes lack rows with NULL
  EXPECT_EQ(streams_of(Equal(0, 6), {}), Ids{});         // a row key
  EXPECT_EQ(MakePlan(schema, Predicate::True(), {.columns = {{}}}).branches[0].streams_size(), 0);
}

TEST(PlanTest, AnOrIsSplitWhereEachAlternativeHasAnIndex) {
  const TableSchema schema = Sparse();
  const Predicate above = Predicate::Compare(0, Op::kGt, Value::Int64(7));
  const Plan two = MakePlan(schema, Predicate::Or({Equal(1, 5), Equal(2, 6)}), {});
  ASSERT_EQ(two.branches.size(), 2u);
  EXPECT_EQ(Streams(two.branches[0]), Ids{1});
  EXPECT_EQ(Streams(two.branches[1]), Ids{3});
  // With what stands beside it in each alternative.
  const Plan inside =
      MakePlan(schema, Predicate::And({above, Predicate::Or({Equal(1, 5), Equal(2, 6)})}), {});
  ASSERT_EQ(inside.branches.size(), 2u);
  for (const pb::Branch& branch : inside.branches) {
    const auto p = ParsePredicate(branch.predicate());
    ASSERT_TRUE(p.ok());
    EXPECT_FALSE(p->Matches({Value::Int64(7), Value::Int64(5), Value::Int64(6)}));
    EXPECT_TRUE(p->Matches({Value::Int64(8), Value::Int64(5), Value::Int64(6)}));
  }
  // An alternative without an index: all is read, once.
  const Plan one = MakePlan(schema, Predicate::Or({Equal(1, 5), above}), {});
  ASSERT_EQ(one.branches.size(), 1u);
  EXPECT_EQ(Streams(one.branches[0]), Ids{});
}

TEST(PlanTest, AnOrOfMoreAlternativesThanABoundIsNotSplit) {
  const TableSchema schema = Sparse();
  std::vector<Predicate> alternatives;
  for (int64_t i = 0; i < 64; ++i) {
    alternatives.push_back(Predicate::And({Equal(1, i), Equal(2, i)}));
  }
  EXPECT_EQ(MakePlan(schema, Predicate::Or(alternatives), {}).branches.size(), 64u);
  alternatives.push_back(Predicate::And({Equal(1, 64), Equal(2, 64)}));
  const Plan plan = MakePlan(schema, Predicate::Or(alternatives), {});
  ASSERT_EQ(plan.branches.size(), 1u);
  EXPECT_EQ(Streams(plan.branches[0]), Ids{});
}

Predicate InFirst(uint32_t column, int64_t count) {
  std::vector<Value> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(Value::Int64(i));
  return Predicate::In(column, std::move(values));
}

TEST(PlanTest, TheValuesOfAnInAreMergedOrWalkedOrNotLookedUpAtAll) {
  const TableSchema schema = Sparse();
  for (const auto& [values, equality] : {std::pair(8, true), {9, false}, {10'000, false}}) {
    const Plan plan = MakePlan(schema, InFirst(1, values), {});
    ASSERT_EQ(Streams(plan.branches[0]), Ids{1});
    EXPECT_EQ(plan.branches[0].streams(0).equality(), equality) << values;
    EXPECT_EQ(plan.branches[0].streams(0).ranges_size(), values);
    EXPECT_EQ(plan.routing.children.size(), static_cast<size_t>(values));
  }
  const Plan many = MakePlan(schema, InFirst(1, 10'001), {});
  EXPECT_EQ(Streams(many.branches[0]), Ids{});
  EXPECT_EQ(many.routing.children.size(), 10'001u);  // the filters are asked all the same
  // With two columns the combinations count: beyond the bound the second one is not looked up.
  const Plan both = MakePlan(schema, Predicate::And({InFirst(2, 101), InFirst(1, 100)}), {});
  for (const pb::IndexStream& stream : both.branches[0].streams()) {
    EXPECT_LE(stream.ranges_size(), 101);
  }
}

TEST(PlanTest, InKeyOrderOnlyAnEqualityIsLookedUp) {
  const TableSchema schema = Sparse();
  const auto streams_of = [&](const Predicate& p) {
    const Plan plan = MakePlan(schema, p, {.key_order = true});
    EXPECT_EQ(plan.branches.size(), 1u);
    return Streams(plan.branches[0]);
  };
  EXPECT_EQ(streams_of(Equal(1, 5)), Ids{1});
  EXPECT_EQ(streams_of(InFirst(1, 8)), Ids{1});
  EXPECT_EQ(streams_of(InFirst(1, 9)), Ids{});
  EXPECT_EQ(streams_of(Predicate::Compare(1, Op::kLt, Value::Int64(5))), Ids{});
  EXPECT_EQ(streams_of(Equal(2, 6)), Ids{3});  // with (b, a) all values of a would be read in turn
  EXPECT_EQ(streams_of(Predicate::Or({Equal(1, 5), Equal(2, 6)})), Ids{});
}

// The keys of the plan hold every row that the condition matches, in every format of the key.
TEST(PlanTest, KeysHoldEveryRowThatMatchesInEveryFormat) {
  Random random(7);
  uint64_t narrowed = 0;
  for (const TableSchema& schema : SchemasOfAllKeys()) {
    const KeyFormat format(schema);
    std::vector<std::pair<std::string, Row>> keys;
    const auto value = [&](size_t part) {
      return RandomKeyValue(schema.columns[schema.key[part]].type, schema.key_parts[part], random);
    };
    while (keys.size() < 60) {
      Row row(schema.columns.size());
      for (size_t part = 0; part < schema.key.size(); ++part) {
        row[schema.key[part]] = !keys.empty() && random.OneIn(2)
                                    ? keys[random.Uniform(keys.size())].second[schema.key[part]]
                                    : value(part);
      }
      if (auto key = format.Encode(row); key.ok()) keys.emplace_back(*key, std::move(row));
    }
    const auto leaf = [&] {
      const size_t part = random.Uniform(schema.key.size());
      const Row& other = keys[random.Uniform(keys.size())].second;
      const Value bound = random.OneIn(3) ? value(part) : other[schema.key[part]];
      if (random.OneIn(5)) {
        return Predicate::In(schema.key[part],
                             {bound, value(part), keys[0].second[schema.key[part]]});
      }
      const auto leaves = LeavesAbout(schema.key[part], bound);
      return leaves[random.Uniform(leaves.size())];
    };
    for (int i = 0; i < 400; ++i) {
      std::vector<Predicate> all;
      for (uint64_t n = 1 + random.Uniform(4); n > 0; --n) {
        all.push_back(random.OneIn(4) ? Predicate::Or({leaf(), leaf()}) : leaf());
      }
      const Predicate p =
          random.OneIn(6) ? Predicate::Not(Predicate::And(all)) : Predicate::And(std::move(all));
      const Plan plan = MakePlan(schema, p, {});
      for (const auto& [key, row] : keys) {
        const bool held = plan.keys.Contains(key);
        if (p.Matches(row)) {
          ASSERT_TRUE(held) << p.ToString(schema);
        }
        narrowed += held ? 0 : 1;
      }
    }
  }
  EXPECT_GT(narrowed, 100'000u);
}

}  // namespace
}  // namespace tamis
