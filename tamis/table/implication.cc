#include "tamis/table/implication.h"

#include <algorithm>

#include "tamis/base/coding.h"

namespace tamis {
namespace {

using Kind = Predicate::Kind;
using Op = Predicate::Op;

bool HasColumn(const Predicate& p) { return p.kind >= Kind::kCompare; }

// Whether the condition, which reads one column, is true of this value of it.
bool IsTrueOf(const Predicate& leaf, const Value& value) {
  Row row(leaf.column + 1);
  row[leaf.column] = value;
  return leaf.Matches(row);
}

// The least value from which on all text or bytes with the prefix are after; NULL: there is none.
Value EndOf(const Value& prefix) {
  std::string end = PrefixEnd(prefix.str());
  if (end.empty()) return Value();
  return prefix.type() == Type::kBytes ? Value::Bytes(std::move(end)) : Value::Text(std::move(end));
}

// The values that a leaf allows, as far as they are an interval: nullptr is no bound.
struct Interval {
  const Value* low = nullptr;
  bool with_low = false;
  const Value* high = nullptr;
  bool with_high = false;
};

bool IsBelow(const Interval& interval, const Value& value, bool or_equal) {
  if (interval.high == nullptr) return false;
  const auto order = *interval.high <=> value;
  return order < 0 || (order == 0 && (or_equal || !interval.with_high));
}

bool IsAbove(const Interval& interval, const Value& value, bool or_equal) {
  if (interval.low == nullptr) return false;
  const auto order = *interval.low <=> value;
  return order > 0 || (order == 0 && (or_equal || !interval.with_low));
}

bool IntervalImplies(const Interval& interval, const Predicate& condition) {
  if (condition.kind != Kind::kCompare) return false;
  const Value& value = condition.values[0];
  switch (condition.op) {
    case Op::kLt:
      return IsBelow(interval, value, false);
    case Op::kLe:
      return IsBelow(interval, value, true);
    case Op::kGt:
      return IsAbove(interval, value, false);
    case Op::kGe:
      return IsAbove(interval, value, true);
    case Op::kNe:
      return IsBelow(interval, value, false) || IsAbove(interval, value, false);
    case Op::kEq:
      return false;
  }
  return false;
}

bool PrefixImplies(const Predicate& prefix, const Predicate& condition) {
  const Value& begin = prefix.values[0];
  if (condition.kind == Kind::kPrefix) return begin.str().starts_with(condition.values[0].str());
  const Value end = EndOf(begin);
  return IntervalImplies(
      {.low = &begin, .with_low = true, .high = end.is_null() ? nullptr : &end, .with_high = false},
      condition);
}

bool CompareImplies(const Predicate& query, const Predicate& condition) {
  const Value* value = &query.values[0];
  switch (query.op) {
    case Op::kLt:
    case Op::kLe:
      return IntervalImplies({.high = value, .with_high = query.op == Op::kLe}, condition);
    case Op::kGt:
    case Op::kGe:
      return IntervalImplies({.low = value, .with_low = query.op == Op::kGe}, condition);
    case Op::kNe:
      return condition.kind == Kind::kCompare && condition.op == Op::kNe &&
             condition.values[0] == *value;
    case Op::kEq:
      return IsTrueOf(condition, *value);
  }
  return false;
}

// Both are leaves of one column.
bool LeafImplies(const Predicate& query, const Predicate& condition) {
  if (query.kind == Kind::kIsNull) return IsTrueOf(condition, Value());
  if (condition.kind == Kind::kNotNull) return true;  // all other leaves are not true of NULL
  if (query.kind == Kind::kPrefix) return PrefixImplies(query, condition);
  return query.kind == Kind::kCompare && CompareImplies(query, condition);
}

}  // namespace

bool Implies(const Predicate& query, const Predicate& condition) {
  const auto implies_it = [&](const Predicate& part) { return Implies(part, condition); };
  const auto is_implied = [&](const Predicate& part) { return Implies(query, part); };
  if (condition.kind == Kind::kTrue || query.kind == Kind::kFalse) return true;
  if (query.kind == Kind::kOr) return std::ranges::all_of(query.children, implies_it);
  if (query.kind == Kind::kIn) {
    return std::ranges::all_of(query.values, [&](const Value& value) {
      return value.is_null() ||
             Implies(Predicate::Compare(query.column, Op::kEq, value), condition);
    });
  }
  if (condition.kind == Kind::kAnd) return std::ranges::all_of(condition.children, is_implied);
  if (condition.kind == Kind::kOr && std::ranges::any_of(condition.children, is_implied)) {
    return true;
  }
  if (query.kind == Kind::kAnd) return std::ranges::any_of(query.children, implies_it);
  return HasColumn(query) && HasColumn(condition) && query.column == condition.column &&
         LeafImplies(query, condition);
}

}  // namespace tamis
