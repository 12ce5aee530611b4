// For any schema, rows and condition: a plan excludes no row that matches. Filters are modelled as
// exact, so that a wrong hash or range is not hidden by a false positive.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/query/plan.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

// Columns of every type, the first ones of which are the key, and indexes on any of them.
TableSchema RandomSchema(Random& random) {
  TableSchema schema;
  schema.name = "t";
  const size_t columns = 3 + random.Uniform(4);
  for (size_t i = 0; i < columns; ++i) {
    schema.columns.push_back({.id = schema.next_column_id++,
                              .name = "c" + std::to_string(i),
                              .type = kAllTypes[random.Uniform(std::size(kAllTypes))]});
  }
  for (uint32_t part = 0; part <= random.Uniform(2); ++part) {
    schema.key.push_back(part);
    schema.columns[part].nullable = false;
  }
  for (uint64_t n = 1 + random.Uniform(5); n > 0; --n) {
    IndexSpec index{.id = schema.next_index_id++,
                    .name = "i" + std::to_string(n),
                    .nulls = random.OneIn(2) ? IndexNulls::kSkip : IndexNulls::kIndex,
                    .seed = random()};
    for (uint64_t wanted = 1 + random.Uniform(3); index.columns.size() < wanted;) {
      const auto column = static_cast<uint32_t>(random.Uniform(columns));
      if (std::ranges::find(index.columns, column) == index.columns.end()) {
        index.columns.push_back(column);
      }
    }
    schema.indexes.push_back(std::move(index));
  }
  return schema;
}

// Rows and conditions over a few values of each column.
class Drawing {
 public:
  Drawing(const TableSchema& schema, Random& random) : schema_(schema), random_(random) {
    for (const Column& column : schema.columns) {
      std::vector<Value> values;
      for (int i = 0; i < 5; ++i) values.push_back(RandomValue(column.type, random));
      values_.push_back(std::move(values));
    }
  }

  Row RandomRow() {
    Row row;
    for (uint32_t i = 0; i < schema_.columns.size(); ++i) {
      row.push_back(!schema_.IsKey(i) && random_.OneIn(4) ? Value() : Known(i));
    }
    return row;
  }

  // Indexes with conditions, which the rows and the searches' conditions are likely to meet.
  void DrawConditions(TableSchema* schema) {
    for (IndexSpec& index : schema->indexes) {
      if (random_.OneIn(3)) index.where = Condition(random_.OneIn(3) ? 2 : 0);
    }
  }
  // A search's condition that may imply that of an index.
  Predicate NearCondition(int depth) {
    const IndexSpec& index = schema_.indexes[random_.Uniform(schema_.indexes.size())];
    if (!index.IsPartial() || random_.OneIn(2)) return Condition(depth);
    return Predicate::And({index.where, Condition(depth)});
  }

  Predicate Condition(int depth) {
    if (depth == 0 || random_.OneIn(3)) return Leaf();
    if (random_.OneIn(8)) return Predicate::Not(Condition(depth - 1));
    std::vector<Predicate> children;
    for (uint64_t n = 1 + random_.Uniform(4); n > 0; --n) children.push_back(Condition(depth - 1));
    return random_.OneIn(2) ? Predicate::And(std::move(children))
                            : Predicate::Or(std::move(children));
  }

 private:
  Value Known(uint32_t column) { return values_[column][random_.Uniform(5)]; }
  Value Any(uint32_t column) {
    if (random_.OneIn(20)) return {};
    return random_.OneIn(10) ? RandomValue(schema_.columns[column].type, random_) : Known(column);
  }

  Predicate Leaf() {
    const auto column = static_cast<uint32_t>(random_.Uniform(schema_.columns.size()));
    const Type type = schema_.columns[column].type;
    switch (random_.Uniform(10)) {
      case 0:
        return Predicate::IsNull(column);
      case 1:
        return Predicate::NotNull(column);
      case 2: {
        std::vector<Value> values;
        for (uint64_t n = random_.OneIn(4) ? 12 : random_.Uniform(5); n > 0; --n) {
          values.push_back(Any(column));
        }
        return Predicate::In(column, std::move(values));
      }
      case 3:
        if (type == Type::kText || type == Type::kBytes) {
          const std::string whole = Known(column).str();
          Predicate leaf = Predicate::Prefix(column, whole.substr(0, random_.Uniform(4)));
          if (type == Type::kBytes) leaf.values[0] = Value::Bytes(leaf.values[0].str());
          return leaf;
        }
        [[fallthrough]];
      case 4:
      case 5:
      case 6:
        return Predicate::Compare(column, Predicate::Op::kEq, Any(column));
      default:
        return Predicate::Compare(column, static_cast<Predicate::Op>(1 + random_.Uniform(6)),
                                  Any(column));
    }
  }

  const TableSchema& schema_;
  Random& random_;
  std::vector<std::vector<Value>> values_;  // by column
};

// The answer of filters, if they are never wrong, for a region that holds this row alone.
bool MayHold(const TableSchema& schema, const RoutingTerm& term, const Row& row) {
  const auto may_hold = [&](const RoutingTerm& child) { return MayHold(schema, child, row); };
  switch (term.kind) {
    case RoutingTerm::Kind::kAll:
      return true;
    case RoutingTerm::Kind::kNone:
      return false;
    case RoutingTerm::Kind::kAnd:
      return std::ranges::all_of(term.children, may_hold);
    case RoutingTerm::Kind::kOr:
      return std::ranges::any_of(term.children, may_hold);
    default:
      break;
  }
  const IndexSpec& index = *schema.FindIndex(term.index_id);
  if (IsSkipped(index, row)) return false;
  const std::vector<std::string> prefixes = IndexPrefixes(index, row);
  const std::string& first = prefixes[0];
  if (term.kind == RoutingTerm::Kind::kRange) {
    return first >= term.low && (term.high.empty() || first < term.high);
  }
  return first == term.first && std::ranges::any_of(prefixes, [&](const std::string& prefix) {
           return Hash(prefix, index.seed) == term.hash;
         });
}

bool Holds(const pb::IndexRange& range, const std::string& entry) {
  return entry >= range.low() && (range.high().empty() || entry < range.high());
}

// The stream reads the row's entry; where it says that it gives row-key order, together with those
// alone that have the same values.
testing::AssertionResult Reads(const TableSchema& schema, const pb::IndexStream& stream,
                               const Row& row) {
  const IndexSpec& index = *schema.FindIndex(stream.index_id());
  if (IsSkipped(index, row)) {
    return testing::AssertionFailure() << "index " << index.name << " has no entry of the row";
  }
  const std::string values = IndexPrefixes(index, row).back();
  const std::string entry = values + *KeyFormat(schema).Encode(row);
  const auto range = std::ranges::find_if(
      stream.ranges(), [&](const pb::IndexRange& candidate) { return Holds(candidate, entry); });
  if (range == stream.ranges().end()) {
    return testing::AssertionFailure() << "index " << index.name << " is not read there";
  }
  if (stream.equality() && range->low() != values) {
    return testing::AssertionFailure() << "index " << index.name << " is read in another order";
  }
  return testing::AssertionSuccess();
}

struct Seen {
  uint64_t matches = 0;
  uint64_t ruled_out = 0;  // rows that routing leaves out
  uint64_t streams = 0;
  uint64_t alternatives = 0;
};

void Check(const TableSchema& schema, const Predicate& p, const PlanOptions& options,
           const std::vector<Row>& rows, Seen* seen) {
  const Plan plan = MakePlan(schema, p, options);
  std::vector<Predicate> branches;
  for (const pb::Branch& branch : plan.branches) {
    const auto parsed = ParsePredicate(branch.predicate());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    branches.push_back(*parsed);
  }
  ASSERT_TRUE(!options.key_order || branches.size() <= 1);
  seen->alternatives += branches.size() > 1 ? 1 : 0;
  for (const Row& row : rows) {
    const std::string key = *KeyFormat(schema).Encode(row);
    const bool matches = p.Matches(row);
    const bool routed = MayHold(schema, plan.routing, row);
    ASSERT_TRUE(!matches || routed) << "routing leaves out the row " << key;
    ASSERT_TRUE(!matches || plan.keys.Contains(key)) << "the keys leave out the row " << key;
    bool found = false;
    for (size_t i = 0; i < branches.size(); ++i) {
      if (!branches[i].Matches(row)) continue;
      found = true;
      for (const pb::IndexStream& stream : plan.branches[i].streams()) {
        ASSERT_TRUE(Reads(schema, stream, row)) << "branch " << i << ", the row " << key;
        ASSERT_TRUE(!options.key_order || stream.equality());
        ++seen->streams;
      }
    }
    // Rows whose keys are not asked for are in no region that is.
    if (plan.keys.Contains(key)) {
      ASSERT_EQ(found, matches) << "the branches, of the row " << key;
    }
    seen->matches += matches ? 1 : 0;
    seen->ruled_out += routed ? 0 : 1;
  }
}

TEST(PlanModelTest, PlansExcludeNoMatchingRow) {
  Seen seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    TableSchema schema = RandomSchema(random);
    Drawing draw(schema, random);
    draw.DrawConditions(&schema);
    ASSERT_EQ(schema.Validate(), Status::Ok()) << "seed " << seed;
    std::vector<Row> rows;
    while (rows.size() < 40) rows.push_back(draw.RandomRow());
    for (int i = 0; i < 60; ++i) {
      const Predicate p = draw.NearCondition(3);
      ASSERT_TRUE(p.Validate(schema).ok());
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + p.ToString(schema) + "\n" +
                   schema.ToString());
      ASSERT_NO_FATAL_FAILURE(Check(schema, p, {.key_order = random.OneIn(3)}, rows, &seen));
    }
  }
  EXPECT_GT(seen.matches, 50'000u);
  EXPECT_GT(seen.ruled_out, 50'000u);
  EXPECT_GT(seen.streams, 10'000u);
  EXPECT_GT(seen.alternatives, 200u);
}

// The model has teeth: a rule that is off loses rows.
uint64_t RowsLost(const PlanOptions& options) {
  uint64_t lost = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    TableSchema schema = RandomSchema(random);
    Drawing draw(schema, random);
    draw.DrawConditions(&schema);
    for (int i = 0; i < 60; ++i) {
      const Predicate p = draw.NearCondition(3);
      const Plan plan = MakePlan(schema, p, options);
      for (int n = 0; n < 10; ++n) {
        const Row row = draw.RandomRow();
        lost += p.Matches(row) && !MayHold(schema, plan.routing, row) ? 1 : 0;
      }
    }
  }
  return lost;
}

TEST(PlanModelTest, SwitchedOffRuleIsNoticed) {
  EXPECT_EQ(RowsLost({}), 0u);
  EXPECT_GT(RowsLost({.sparse_as_whole = true}), 0u);
  EXPECT_GT(RowsLost({.conditions_of_streams_only = true}), 0u);
}

}  // namespace
}  // namespace tamis
