#include "tamis/query/plan.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/table/random_keys.h"

namespace tamis {
namespace {

using Op = Predicate::Op;
using Kind = RoutingTerm::Kind;

Predicate Equal(uint32_t column, int64_t n) {
  return Predicate::Compare(column, Op::kEq, Value::Int64(n));
}

// Columns id (key), a, b; sparse indexes on (a) and (b, a), a whole one on (b).
TableSchema Sparse() {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{.id = 1, .name = "id", .type = Type::kInt64, .nullable = false},
                    {.id = 2, .name = "a", .type = Type::kInt64},
                    {.id = 3, .name = "b", .type = Type::kInt64}};
  schema.next_column_id = 4;
  schema.key = {0};
  schema.indexes = {
      {.id = 1, .name = "a", .columns = {1}, .nulls = IndexNulls::kSkip},
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
  for (const Predicate& p : {null, Predicate::Not(Predicate::NotNull(1)),
                             Predicate::And({null, Equal(2, 5)})}) {
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
  for (const Predicate& p :
       {Equal(1, 5), Predicate::Compare(1, Op::kLt, Value::Int64(5)),
        Predicate::In(1, {Value(), Value::Int64(1), Value::Int64(2)}),
        Predicate::Or({Equal(1, 5), Equal(1, 6)})}) {
    SCOPED_TRACE(p.ToString(schema));
    const Plan plan = MakePlan(schema, p, {});
    EXPECT_TRUE(Asks(plan.routing, 1));
    EXPECT_TRUE(Walks(plan, 1));
  }
}

// Whatever the key's format is: the keys of the plan hold every row that the condition matches.
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
      const Predicate p = random.OneIn(6) ? Predicate::Not(Predicate::And(all))
                                          : Predicate::And(std::move(all));
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
