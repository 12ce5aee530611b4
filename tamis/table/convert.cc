// CompareConverted: comparisons between a column and a value of another type.
//
// A number is compared exactly, whatever the types: the value is replaced by its floor in the
// column's type, and the operator by one that says the same about the floor. With f = floor(v) and
// v not in the type, n < v and n <= v are both n <= f, n > v and n >= v are both n > f, and n = v
// is never true.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tamis/table/decimal.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

// False for every value, unknown for NULL.
Predicate Never(uint32_t column, Type type) {
  const auto below = [column](Value least) {
    return Predicate::Compare(column, Op::kLt, std::move(least));
  };
  switch (type) {
    case Type::kInt64:
      return below(Value::Int64(std::numeric_limits<int64_t>::min()));
    case Type::kBool:
      return below(Value::Bool(false));
    case Type::kDouble:
      return below(*Value::Double(-std::numeric_limits<double>::infinity()));
    default: {  // decimals have no least one
      const Value zero = *Value::Decimal("0");
      return Predicate::And({below(zero), Predicate::Compare(column, Op::kGe, zero)});
    }
  }
}

Predicate Always(uint32_t column, Type type) { return Predicate::Not(Never(column, type)); }

struct Floor {
  Value value;         // the greatest value of the column's type that is not above v
  bool exact = false;  // it is v
  bool none = false;   // v is below all values of the type
};

Floor FloorInt64(const Decimal& v, int64_t min, int64_t max, Value (*make)(int64_t)) {
  Floor below{.value = Value(), .none = true};
  Floor above{.value = make(max)};
  if (v.exponent > 19) return v.negative ? below : above;
  __int128 n = 0;
  for (int64_t i = 0; i < v.exponent; ++i) {
    const auto at = static_cast<size_t>(i);
    n = n * 10 + (at < v.digits.size() ? v.digits[at] - '0' : 0);
  }
  const bool exact = static_cast<int64_t>(v.digits.size()) <= v.exponent;
  if (v.negative) n = exact ? -n : -n - 1;
  if (n < min) return below;
  if (n > max) return above;
  return {.value = make(static_cast<int64_t>(n)), .exact = exact || v.digits.empty()};
}

Floor FloorDouble(const Decimal& v) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string text = v.ToString();
  double d = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), d).ec ==
      std::errc::result_out_of_range) {
    d = v.exponent < 0 ? 0 : v.negative ? -kInfinity : kInfinity;
  }
  // The nearest double may lie above.
  if (d == kInfinity || (std::isfinite(d) && Decimal::FromDouble(d) > v)) {
    d = std::nextafter(d, -kInfinity);
  }
  return {.value = *Value::Double(d), .exact = std::isfinite(d) && Decimal::FromDouble(d) == v};
}

Predicate CompareFloor(uint32_t column, Type type, Op op, const Floor& floor) {
  if (floor.exact) return Predicate::Compare(column, op, floor.value);
  switch (op) {
    case Op::kEq:
      return Never(column, type);
    case Op::kNe:
      return Always(column, type);
    case Op::kLt:
    case Op::kLe:
      return floor.none ? Never(column, type) : Predicate::Compare(column, Op::kLe, floor.value);
    case Op::kGt:
    case Op::kGe:
      return floor.none ? Always(column, type) : Predicate::Compare(column, Op::kGt, floor.value);
  }
  return Never(column, type);
}

// An infinite double against a column that holds no infinities.
Predicate CompareInfinity(uint32_t column, Type type, Op op, bool positive) {
  const bool below = op == Op::kLt || op == Op::kLe || op == Op::kNe;
  const bool above = op == Op::kGt || op == Op::kGe || op == Op::kNe;
  return (positive ? below : above) ? Always(column, type) : Never(column, type);
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// A number as SQLite writes it when it turns it into text.
std::string NumberText(const Value& value) {
  if (value.type() != Type::kDouble) return value.ToString();
  if (std::isinf(value.dbl())) return value.dbl() > 0 ? "Inf" : "-Inf";
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof(buffer), value.dbl(), std::chars_format::general, 15);
  std::string text(buffer, end);
  if (text.find('.') == std::string::npos) {
    const size_t e = text.find('e');
    text.insert(e == std::string::npos ? text.size() : e, ".0");
  }
  return text;
}

Predicate CompareNumber(uint32_t column, Type type, Op op, const Decimal& number) {
  switch (type) {
    case Type::kInt64:
      return CompareFloor(column, type, op,
                          FloorInt64(number, std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max(), Value::Int64));
    case Type::kBool:
      return CompareFloor(column, type, op,
                          FloorInt64(number, 0, 1, [](int64_t n) { return Value::Bool(n != 0); }));
    case Type::kDouble:
      return CompareFloor(column, type, op, FloorDouble(number));
    default:
      return Predicate::Compare(column, op, *Value::Decimal(number.ToString()));
  }
}

}  // namespace

std::optional<Predicate> CompareConverted(const TableSchema& schema, uint32_t column, Op op,
                                          const Value& value) {
  const Type type = schema.columns[column].type;
  if (value.is_null() || value.type() == type) return Predicate::Compare(column, op, value);

  const bool number = value.type() == Type::kInt64 || value.type() == Type::kDouble ||
                      value.type() == Type::kDecimal;
  switch (type) {
    case Type::kText:
      if (!number) return std::nullopt;
      return Predicate::Compare(column, op, Value::Text(NumberText(value)));
    case Type::kBytes:
      return std::nullopt;
    case Type::kTimestamp: {
      if (value.type() != Type::kText) return std::nullopt;
      auto time = Value::Parse(Type::kTimestamp, Trimmed(value.str()));
      if (!time.ok()) return std::nullopt;
      return Predicate::Compare(column, op, *std::move(time));
    }
    case Type::kInt64:
    case Type::kBool:
    case Type::kDouble:
    case Type::kDecimal:
      break;
  }

  if (number) {
    if (value.type() == Type::kDouble) {
      // On a decimal column 0.1 means what its writer meant, not the double's exact value.
      if (std::isinf(value.dbl())) {
        return CompareInfinity(column, type, op, value.dbl() > 0);
      }
      if (type != Type::kDecimal) {
        return CompareNumber(column, type, op, Decimal::FromDouble(value.dbl()));
      }
    }
    const auto decimal = Decimal::Parse(value.ToString());
    if (!decimal.ok()) return std::nullopt;
    return CompareNumber(column, type, op, *decimal);
  }
  if (value.type() != Type::kText) return std::nullopt;
  const std::string_view text = Trimmed(value.str());
  if (type == Type::kDouble && !Value::Parse(Type::kInt64, text).ok()) {
    // SQLite reads text that is no whole number as a double: '0.1' means the double 0.1.
    auto nearest = Value::Parse(type, text);
    if (nearest.ok()) return Predicate::Compare(column, op, *std::move(nearest));
  }
  if (const auto decimal = Decimal::Parse(text); decimal.ok()) {
    return CompareNumber(column, type, op, *decimal);
  }
  if (auto parsed = Value::Parse(type, text); parsed.ok()) {  // "true", "inf"
    return Predicate::Compare(column, op, *std::move(parsed));
  }
  return std::nullopt;
}

}  // namespace tamis
