#include "tamis/table/value.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "tamis/base/ascii.h"
#include "tamis/table/decimal.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

struct NamedType {
  std::string_view name;
  Type type;
};

constexpr NamedType kTypes[] = {
    {"text", Type::kText},       {"bytes", Type::kBytes},   {"int64", Type::kInt64},
    {"double", Type::kDouble},   {"bool", Type::kBool},     {"timestamp", Type::kTimestamp},
    {"decimal", Type::kDecimal}, {"string", Type::kText},   {"blob", Type::kBytes},
    {"int", Type::kInt64},       {"integer", Type::kInt64}, {"bigint", Type::kInt64},
    {"float", Type::kDouble},    {"real", Type::kDouble},   {"boolean", Type::kBool},
    {"numeric", Type::kDecimal},
};

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

Status Unreadable(std::string_view text, std::string_view what) {
  return InvalidArgument("\"" + std::string(text.substr(0, 60)) + "\" is not " + std::string(what));
}

Result<Value> ParseBool(std::string_view text) {
  const std::string word = Lower(text);
  for (const char* yes : {"true", "t", "yes", "1"}) {
    if (word == yes) return Value::Bool(true);
  }
  for (const char* no : {"false", "f", "no", "0"}) {
    if (word == no) return Value::Bool(false);
  }
  return Unreadable(text, "a truth value; write true or false");
}

Result<Value> ParseHex(std::string_view text) {
  const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view hex = prefixed ? text.substr(2) : text;
  std::string bytes;
  bool good = prefixed && hex.size() % 2 == 0;
  for (size_t i = 0; good && i < hex.size(); i += 2) {
    const int high = HexDigit(hex[i]);
    const int low = HexDigit(hex[i + 1]);
    good = high >= 0 && low >= 0;
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  if (!good) return Unreadable(text, "bytes; write them in hexadecimal, as 0x00ff");
  return Value::Bytes(std::move(bytes));
}

// The whole of `text` as a number, with an optional plus.
template <class T>
std::errc ParseNumber(std::string_view text, T* out) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end != text.data() + text.size()) return std::errc::invalid_argument;
  return error;
}

}  // namespace

std::string DoubleText(double d) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), d);
  std::string out(buffer, end);
  if (out.find_first_not_of("-0123456789") == std::string::npos) out += ".0";
  return out;
}

std::string_view TypeName(Type type) {
  for (const NamedType& named : kTypes) {
    if (named.type == type) return named.name;
  }
  return "unknown";
}

Result<Type> ParseType(std::string_view name) {
  const std::string lower = Lower(name);
  for (const NamedType& named : kTypes) {
    if (named.name == lower) return named.type;
  }
  return InvalidArgument("there is no type \"" + std::string(name.substr(0, 60)) +
                         "\"; the types are text, bytes, int64, double, bool, timestamp, decimal");
}

Result<Value> Value::Double(double d) {
  if (std::isnan(d)) return InvalidArgument("NaN cannot be stored: it has no place in an order");
  return Value(Type::kDouble, d == 0 ? 0.0 : d);
}

Result<Value> Value::Decimal(std::string_view digits) {
  TAMIS_ASSIGN_OR_RETURN(const tamis::Decimal decimal, tamis::Decimal::Parse(digits));
  return Value(Type::kDecimal, decimal.ToString());
}

Result<Value> Value::Parse(Type type, std::string_view text) {
  switch (type) {
    case Type::kText:
      return Text(std::string(text));
    case Type::kBytes:
      return ParseHex(text);
    case Type::kInt64: {
      int64_t n = 0;
      if (ParseNumber(text, &n) != std::errc()) {
        return Unreadable(text, "a whole number of 64 bits");
      }
      return Int64(n);
    }
    case Type::kDouble: {
      double d = 0;
      const std::errc error = ParseNumber(text, &d);
      if (error == std::errc::result_out_of_range) {
        return Unreadable(text, "within the range of a double");
      }
      if (error != std::errc()) return Unreadable(text, "a number");
      return Double(d);
    }
    case Type::kBool:
      return ParseBool(text);
    case Type::kTimestamp: {
      TAMIS_ASSIGN_OR_RETURN(const int64_t micros, ParseTimestamp(text));
      return Timestamp(micros);
    }
    case Type::kDecimal:
      return Decimal(text);
  }
  return InvalidArgument("cannot read a value of type " + std::to_string(static_cast<int>(type)));
}

std::string Value::ToString() const {
  if (is_null()) return "NULL";
  switch (type_) {
    case Type::kText:
    case Type::kDecimal:
      return str();
    case Type::kBytes: {
      static constexpr char kHex[] = "0123456789abcdef";
      std::string out = "0x";
      for (const unsigned char c : str()) {
        out += kHex[c >> 4];
        out += kHex[c & 15];
      }
      return out;
    }
    case Type::kInt64:
      return std::to_string(int64());
    case Type::kDouble:
      return DoubleText(dbl());
    case Type::kBool:
      return int64() != 0 ? "true" : "false";
    case Type::kTimestamp:
      return FormatTimestamp(int64());
  }
  return "";
}

std::strong_ordering operator<=>(const Value& a, const Value& b) {
  if (a.is_null() || b.is_null()) return !a.is_null() <=> !b.is_null();
  if (a.type_ != b.type_) return a.type_ <=> b.type_;
  switch (a.type_) {
    case Type::kText:
    case Type::kBytes:
      return a.str().compare(b.str()) <=> 0;
    case Type::kDecimal: {
      if (a.str() == b.str()) return std::strong_ordering::equal;
      const auto left = Decimal::Parse(a.str());
      const auto right = Decimal::Parse(b.str());
      return *left <=> *right;
    }
    case Type::kDouble:  // never NaN, never -0.0
      return a.dbl() < b.dbl()   ? std::strong_ordering::less
             : a.dbl() > b.dbl() ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
    case Type::kInt64:
    case Type::kBool:
    case Type::kTimestamp:
      break;
  }
  return a.int64() <=> b.int64();
}

}  // namespace tamis
