// Value: one typed cell of a row, or NULL.
//
// Values of one column compare by their type's order (numbers by number, text and bytes by their
// bytes, false < true), NULL before everything; equal values are one value: -0.0 is 0.0, decimal
// "1.00" is "1". NaN is refused where values are made.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "tamis/base/status.h"

namespace tamis {

// The numbers are stored; they never change.
enum class Type : uint8_t {
  kText = 1,  // UTF-8, ordered by bytes
  kBytes = 2,
  kInt64 = 3,
  kDouble = 4,
  kBool = 5,
  kTimestamp = 6,  // microseconds since 1970-01-01 UTC
  kDecimal = 7,    // any number of digits, exact
};

// The fewest digits that are read as the same double again, and a point or an exponent: "0.1",
// "2.0", "1e+300", "-0.0", "inf".
std::string DoubleText(double d);

std::string_view TypeName(Type type);           // "text", "bytes", "int64", ...
Result<Type> ParseType(std::string_view name);  // the same names, and "int", "string", "float"

class Value {
 public:
  Value() = default;  // NULL

  // The string is copied before the variant exists: in libstdc++ 12 a variant of these types whose
  // own copy constructor throws (std::bad_alloc of the string) is destroyed with an index that it
  // does not have, which is undefined behaviour.
  Value(const Value& other) : type_(other.type_) {
    if (const auto* text = std::get_if<std::string>(&other.value_)) {
      value_ = std::string(*text);
    } else {
      value_ = other.value_;
    }
  }
  Value& operator=(const Value& other) {
    if (this != &other) *this = Value(other);
    return *this;
  }
  Value(Value&&) noexcept = default;
  Value& operator=(Value&&) noexcept = default;
  ~Value() = default;

  static Value Text(std::string text) { return Value(Type::kText, std::move(text)); }
  static Value Bytes(std::string bytes) { return Value(Type::kBytes, std::move(bytes)); }
  static Value Int64(int64_t n) { return Value(Type::kInt64, n); }
  static Value Bool(bool b) { return Value(Type::kBool, static_cast<int64_t>(b)); }
  static Value Timestamp(int64_t micros) { return Value(Type::kTimestamp, micros); }
  static Result<Value> Double(double d);                  // refuses NaN; -0.0 becomes 0.0
  static Result<Value> Decimal(std::string_view digits);  // "-12.50e3"; kept canonical

  // Reads text as a person or a file writes it: "5", "2.5e3", "true", "2026-01-02T03:04:05Z".
  static Result<Value> Parse(Type type, std::string_view text);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  Type type() const { return type_; }  // REQUIRES: not null (a NULL has no type)
  int64_t int64() const { return std::get<int64_t>(value_); }  // int64, bool, timestamp
  double dbl() const { return std::get<double>(value_); }
  const std::string& str() const { return std::get<std::string>(value_); }  // text, bytes, decimal

  // A readable form that Parse reads back; NULL is "NULL", bytes are hex with 0x.
  std::string ToString() const;

  // NULL < all others. REQUIRES: the same type where neither is NULL.
  friend std::strong_ordering operator<=>(const Value& a, const Value& b);
  friend bool operator==(const Value& a, const Value& b) { return (a <=> b) == 0; }

 private:
  template <class T>
  Value(Type type, T value) : type_(type), value_(std::move(value)) {}

  Type type_ = Type::kText;
  std::variant<std::monostate, int64_t, double, std::string> value_;
};

}  // namespace tamis
