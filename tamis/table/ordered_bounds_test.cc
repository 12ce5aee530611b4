#include "tamis/table/ordered_bounds.h"

#include <gtest/gtest.h>

#include "tamis/table/codec.h"
#include "tamis/table/testing/random_values.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

constexpr Op kOps[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe};

bool LiesWithin(const std::string& encoded, const OrderedBounds& bounds) {
  return bounds.low <= encoded && (bounds.high.empty() || encoded < bounds.high);
}

// A value that satisfies a condition has its encoding within the bounds, in keys and, cut where it
// is long, in entries; in keys no other value has.
class OrderedBoundsTest : public testing::Test {
 protected:
  void Expect(const Predicate& condition, const Value& value) {
    const bool matches = condition.Matches({value});
    for (const bool indexed : {false, true}) {
      std::string encoded;
      if (indexed) {
        AppendIndexed(value, &encoded);
      } else {
        AppendOrdered(value, &encoded);
      }
      const auto bounds = BoundsOf(condition, indexed);
      if (!bounds.has_value()) continue;
      ++asked_;
      if (matches) {
        ASSERT_TRUE(LiesWithin(encoded, *bounds)) << "indexed: " << indexed;
      } else if (!indexed) {
        ASSERT_FALSE(LiesWithin(encoded, *bounds));
      }
    }
  }

  int asked_ = 0;
};

TEST_F(OrderedBoundsTest, HoldAllThatSatisfiesTheirCondition) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    for (const Type type : kAllTypes) {
      std::vector<Value> values = {Value()};
      for (int i = 0; i < 60; ++i) values.push_back(RandomValue(type, random));
      for (const Value& literal : values) {
        for (const Value& value : values) {
          for (const Op op : kOps) Expect(Predicate::Compare(0, op, literal), value);
          if (type == Type::kText && !literal.is_null()) {
            Expect(Predicate::Prefix(0, literal.str()), value);
          }
          Expect(Predicate::IsNull(0), value);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(asked_, 100'000);
}

// Entries hold the same of all of these: no entry shows which of them it has.
TEST_F(OrderedBoundsTest, IncludeValuesThatDifferOnlyBehindTheCut) {
  const std::string head(kIndexValueLimit, 'x');
  std::vector<Value> values;
  for (const char* tail : {"", "a", "b", "ba", "c"}) values.push_back(Value::Text(head + tail));
  for (const Value& literal : values) {
    for (const Value& value : values) {
      for (const Op op : kOps) Expect(Predicate::Compare(0, op, literal), value);
      Expect(Predicate::Prefix(0, literal.str()), value);
    }
  }
}

}  // namespace
}  // namespace tamis
