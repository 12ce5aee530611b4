// Implies is proved by enumeration: a condition that it says yes to holds in every row.
#include "tamis/table/implication.h"

#include <gtest/gtest.h>

#include <bitset>
#include <string>
#include <vector>

#include "tamis/table/schema.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

constexpr size_t kValues = 7;
using Truth = std::bitset<kValues * kValues>;  // the rows in which a condition is true

// Two columns of one type; the constants of the conditions, and values below, equal to, between and
// above them.
struct Domain {
  Type type;
  std::vector<Value> constants;
  std::vector<Value> values;  // NULL first

  TableSchema Schema() const {
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "a", .type = type}, {.name = "b", .type = type}};
    return schema;
  }

  std::vector<Predicate> LeavesOf(uint32_t column) const {
    std::vector<Predicate> leaves = {Predicate::IsNull(column),
                                     Predicate::NotNull(column),
                                     Predicate::In(column, {}),
                                     Predicate::In(column, constants),
                                     Predicate::In(column, {Value(), constants[0]}),
                                     Predicate::Between(column, constants[0], constants[1]),
                                     Predicate::Compare(column, Op::kEq, Value())};
    for (const Value& constant : constants) {
      for (int op = 1; op <= 6; ++op) {
        leaves.push_back(Predicate::Compare(column, static_cast<Op>(op), constant));
      }
      if (type != Type::kText) continue;
      leaves.push_back(Predicate::Prefix(column, constant.str()));
    }
    return leaves;
  }

  std::vector<Predicate> Leaves() const {
    std::vector<Predicate> leaves = {Predicate::True(), Predicate::False()};
    for (const uint32_t column : {0u, 1u}) {
      for (const Predicate& leaf : LeavesOf(column)) {
        leaves.push_back(leaf);
        leaves.push_back(Predicate::Not(leaf));
      }
    }
    return leaves;
  }

  Truth TruthOf(const Predicate& p) const {
    Truth truth;
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < values.size(); ++j) {
        truth[i * kValues + j] = p.Matches({values[i], values[j]});
      }
    }
    return truth;
  }
};

Value N(int64_t n) { return Value::Int64(n); }
Value T(const char* text) { return Value::Text(text); }

Domain Numbers() {
  return {Type::kInt64, {N(10), N(20)}, {Value(), N(5), N(10), N(15), N(20), N(25)}};
}
Domain Texts() {
  return {Type::kText,
          {T("b"), T("bc")},
          {Value(), T("a"), T("b"), T("bb"), T("bc"), T("bcd"), T("c")}};
}

struct Case {
  Predicate predicate;
  Predicate normal;
  Truth truth;
};

std::vector<Case> CasesOf(const Domain& domain, std::vector<Predicate> predicates) {
  std::vector<Case> cases;
  for (Predicate& predicate : predicates) {
    EXPECT_TRUE(predicate.Validate(domain.Schema()).ok());
    Predicate normal = predicate.Normalized();
    const Truth truth = domain.TruthOf(predicate);
    cases.push_back({std::move(predicate), std::move(normal), truth});
  }
  return cases;
}

// All pairs of leaves and negated leaves, joined by AND and OR, and negations of those.
std::vector<Predicate> ShortPredicates(const Domain& domain) {
  const std::vector<Predicate> leaves = domain.Leaves();
  std::vector<Predicate> all = leaves;
  for (size_t i = 0; i < leaves.size(); ++i) {
    for (size_t j = i; j < leaves.size(); ++j) {
      all.push_back(Predicate::And({leaves[i], leaves[j]}));
      all.push_back(Predicate::Or({leaves[i], leaves[j]}));
      if ((i + j) % 3 == 0) all.push_back(Predicate::Not(all[all.size() - 1 - i % 2]));
    }
  }
  return all;
}

class ImplicationTest : public ::testing::TestWithParam<Domain> {};

// In a row in which the query is true, the condition is neither false nor unknown.
TEST_P(ImplicationTest, ImpliedConditionIsTrueInEveryRowOfTheQuery) {
  const Domain& domain = GetParam();
  const TableSchema schema = domain.Schema();
  const std::vector<Case> queries = CasesOf(domain, ShortPredicates(domain));
  uint64_t implied = 0;
  for (size_t step = 0; const Case& condition : queries) {
    // Every leaf, and some of the others.
    if (step++ > domain.Leaves().size() && step % 37 != 0) continue;
    for (const Case& query : queries) {
      if (!Implies(query.normal, condition.normal)) continue;
      ++implied;
      ASSERT_TRUE((query.truth & ~condition.truth).none())
          << query.predicate.ToString(schema) << " is said to imply "
          << condition.predicate.ToString(schema);
    }
  }
  EXPECT_GT(implied, 10'000u);
}

// Nothing that one comparison implies is overlooked.
TEST_P(ImplicationTest, EveryImplicationBetweenTwoLeavesIsFound) {
  const Domain& domain = GetParam();
  const TableSchema schema = domain.Schema();
  const std::vector<Case> leaves = CasesOf(domain, domain.LeavesOf(0));
  for (const Case& query : leaves) {
    // Two comparisons; of one of them alone less follows.
    if (query.normal.kind == Predicate::Kind::kAnd) continue;
    for (const Case& condition : leaves) {
      if ((query.truth & ~condition.truth).any()) continue;
      EXPECT_TRUE(Implies(query.normal, condition.normal))
          << query.predicate.ToString(schema) << " implies "
          << condition.predicate.ToString(schema);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ImplicationTest, ::testing::Values(Numbers(), Texts()),
                         [](const auto& info) { return std::string(TypeName(info.param.type)); });

TEST(ImplicationOfNullTest, NotEqualIsNotIsNotOfTheQuery) {
  const Predicate condition = Predicate::Compare(0, Op::kNe, T("closed")).Normalized();
  // status IS NOT 'closed', which is true of NULL
  const Predicate is_not = Predicate::Or({Predicate::IsNull(0), condition}).Normalized();
  EXPECT_FALSE(Implies(is_not, condition));
  EXPECT_TRUE(Implies(condition, is_not));
  EXPECT_TRUE(Implies(Predicate::Compare(0, Op::kEq, T("open")), condition));
}

}  // namespace
}  // namespace tamis
