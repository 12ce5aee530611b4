#include "tamis/table/column_totals.h"

#include <algorithm>
#include <limits>
#include <string>

#include "tamis/table/decimal.h"

namespace tamis {
namespace {

constexpr int kDigits = 9;  // decimal digits of a position
constexpr int64_t kBase = 1'000'000'000;
constexpr size_t kMostDigits = 1'000'000;  // digits of a sum

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Brings each number into (-kBase, kBase), or [0, kBase) where none was negative.
void Carry(ColumnTotals::Parts* parts) {
  for (auto at = parts->begin(); at != parts->end(); ++at) {
    const __int128 carry = at->second / kBase;
    at->second -= carry * kBase;
    if (carry != 0) (*parts)[at->first + 1] += carry;
  }
  std::erase_if(*parts, [](const auto& part) { return part.second == 0; });
}

// Makes all numbers positive. REQUIRES: the sum is, and each number is in (-kBase, kBase).
void Borrow(ColumnTotals::Parts* parts) {
  for (auto at = parts->begin(); at != parts->end(); ++at) {
    if (at->second >= 0) continue;
    at->second += kBase;
    (*parts)[at->first + 1] -= 1;
  }
  std::erase_if(*parts, [](const auto& part) { return part.second == 0; });
}

Result<Value> DecimalOf(ColumnTotals::Parts parts) {
  Carry(&parts);
  if (parts.empty()) return Value::Decimal("0");
  Decimal sum;
  // The first number outweighs all others.
  sum.negative = parts.rbegin()->second < 0;
  if (sum.negative) {
    for (auto& part : parts) part.second = -part.second;
  }
  Borrow(&parts);
  const int64_t first = parts.rbegin()->first;
  if ((first - parts.begin()->first + 1) * kDigits > static_cast<int64_t>(kMostDigits)) {
    return InvalidArgument("a sum has more than " + std::to_string(kMostDigits) + " digits");
  }
  for (int64_t position = first; position >= parts.begin()->first; --position) {
    const auto part = parts.find(static_cast<int32_t>(position));
    const std::string digits =
        part == parts.end() ? "0" : std::to_string(static_cast<int64_t>(part->second));
    sum.digits += std::string(kDigits - digits.size(), '0') + digits;
  }
  const size_t leading = sum.digits.find_first_not_of('0');
  sum.exponent = (first + 1) * kDigits - static_cast<int64_t>(leading);
  sum.digits = sum.digits.substr(leading, sum.digits.find_last_not_of('0') + 1 - leading);
  return Value::Decimal(sum.ToString());
}

}  // namespace

void ColumnTotals::Add(const Value& value, uint64_t count) {
  if (value.is_null() || count == 0) return;
  state_.values += count;
  switch (type_) {
    case Type::kInt64:
    case Type::kBool:
      state_.parts[0] += static_cast<__int128>(value.int64()) * count;
      break;
    case Type::kDouble:
      state_.real += value.dbl() * static_cast<double>(count);
      break;
    case Type::kDecimal:
      AddDecimal(value.str(), count);
      break;
    case Type::kText:
    case Type::kBytes:
    case Type::kTimestamp:
      break;
  }
  Widen(value);
}

// Digit i, from 1, weighs 10^(exponent - i).
void ColumnTotals::AddDecimal(const std::string& canonical, uint64_t count) {
  const auto decimal = Decimal::Parse(canonical);
  if (!decimal.ok()) return;  // no value is so
  const std::string& digits = decimal->digits;
  int64_t weight = decimal->exponent;
  for (size_t i = 0; i < digits.size();) {
    const int64_t position = FloorDiv(weight - 1, kDigits);
    int64_t number = 0;
    for (; i < digits.size() && weight > position * kDigits; ++i) {
      number = number * 10 + (digits[i] - '0');
      --weight;
    }
    for (int64_t rest = weight - position * kDigits; rest > 0; --rest) number *= 10;
    weight = position * kDigits;
    state_.parts[static_cast<int32_t>(position)] +=
        static_cast<__int128>(decimal->negative ? -number : number) * count;
  }
}

void ColumnTotals::Widen(const Value& value) {
  if (value.is_null()) return;
  if (state_.least.is_null() || value < state_.least) state_.least = value;
  if (state_.greatest.is_null() || value > state_.greatest) state_.greatest = value;
}

void ColumnTotals::Merge(const ColumnTotals& other) {
  state_.values += other.state_.values;
  for (const auto& [position, number] : other.state_.parts) state_.parts[position] += number;
  state_.real += other.state_.real;
  Widen(other.state_.least);
  Widen(other.state_.greatest);
}

size_t ColumnTotals::SizeBytes() const {
  constexpr size_t kPart = 64;
  const auto size = [](const Value& value) {
    const bool is_long =
        !value.is_null() && (value.type() == Type::kText || value.type() == Type::kBytes ||
                             value.type() == Type::kDecimal);
    return is_long ? value.str().size() : 0;
  };
  return sizeof(*this) + kPart * state_.parts.size() + size(state_.least) + size(state_.greatest);
}

Result<Value> ColumnTotals::Sum() const {
  if (state_.values == 0) return Value();
  switch (type_) {
    case Type::kInt64:
    case Type::kBool: {
      const auto part = state_.parts.find(0);
      const __int128 sum = part == state_.parts.end() ? 0 : part->second;
      if (sum < std::numeric_limits<int64_t>::min() || sum > std::numeric_limits<int64_t>::max()) {
        return InvalidArgument("integer overflow: a sum does not fit in 64 bits");
      }
      return Value::Int64(static_cast<int64_t>(sum));
    }
    case Type::kDouble: {
      auto sum = Value::Double(state_.real);
      return sum.ok() ? *std::move(sum) : Value();
    }
    case Type::kDecimal:
      return DecimalOf(state_.parts);
    case Type::kText:
    case Type::kBytes:
    case Type::kTimestamp:
      break;
  }
  return Value();
}

}  // namespace tamis
