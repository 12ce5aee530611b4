#include "tests/golden/golden_values.h"

#include <cstdint>
#include <limits>

namespace tamis {
namespace {

const char* const kDecimals[] = {"0",
                                 "-0.00",
                                 "1",
                                 "-1",
                                 "10",
                                 "0.1",
                                 "12.5",
                                 "-12.50e3",
                                 "99",
                                 "100",
                                 "101",
                                 "0.001",
                                 "1e40",
                                 "1e41",
                                 "1e-9",
                                 "1e-10",
                                 "127",
                                 "128",
                                 "-128",
                                 "-129",
                                 "255",
                                 "256",
                                 "-256",
                                 "32767",
                                 "32768",
                                 "12345678901234567890",
                                 "-12345678901234567890123456789.123456789",
                                 "1e999999999",
                                 "1e-999999999",
                                 "9.99e-20",
                                 "18446744073709551616",
                                 "-18446744073709551616"};

}  // namespace

std::string Pattern(size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i) out += static_cast<char>(i * 131 + i / 256 + 7);
  return out;
}

std::span<const char* const> DecimalTexts() { return kDecimals; }

std::vector<Value> Values(Type type) {
  std::vector<Value> values;
  switch (type) {
    case Type::kText:
    case Type::kBytes:
      for (const std::string& text :
           {std::string(), std::string("a"), std::string("ab|c"), std::string("\0", 1),
            std::string("a\0b", 3), std::string("\xff\xfe"), std::string("\xc3\xa9"), Pattern(1024),
            Pattern(1025), std::string(1023, 'x') + '\0' + "y"}) {
        values.push_back(type == Type::kText ? Value::Text(text) : Value::Bytes(text));
      }
      break;
    case Type::kInt64:
      for (const int64_t n :
           {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{127}, int64_t{128}, int64_t{-128},
            int64_t{-129}, int64_t{300}, int64_t{32767}, int64_t{32768}, int64_t{-32768},
            int64_t{1000000}, int64_t{2147483647}, int64_t{2147483648}, int64_t{-2147483648},
            std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
        values.push_back(Value::Int64(n));
      }
      break;
    case Type::kDouble:
      for (const double d :
           {0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.1, 1e300, -1e300, 5e-324, 1e10,
            3.4028234663852886e38, 1.401298464324817e-45, 123456.789,
            std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
        values.push_back(*Value::Double(d));
      }
      break;
    case Type::kBool:
      values = {Value::Bool(false), Value::Bool(true)};
      break;
    case Type::kTimestamp:
      for (const int64_t n :
           {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1000}, int64_t{-1000}, int64_t{1500000},
            int64_t{-3000000}, int64_t{1767322984000000}, int64_t{1767322984250000},
            std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
        values.push_back(Value::Timestamp(n));
      }
      break;
    case Type::kDecimal:
      for (const char* text : kDecimals) values.push_back(*Value::Decimal(text));
      break;
  }
  return values;
}

}  // namespace tamis
