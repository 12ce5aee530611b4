#include "tamis/table/decimal.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

#include "tamis/base/ascii.h"

namespace tamis {
namespace {

Status NotANumber(std::string_view text) {
  return InvalidArgument("\"" + std::string(text.substr(0, 60)) +
                         "\" is not a decimal number; write it as -12.5 or 1.25e300");
}

}  // namespace

Result<Decimal> Decimal::Parse(std::string_view text) {
  std::string_view rest = text;
  Decimal result;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    result.negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  int64_t before_point = 0;
  bool any_digit = false;
  bool point = false;
  while (!rest.empty() && (IsDigit(rest[0]) || (rest[0] == '.' && !point))) {
    if (rest[0] == '.') {
      point = true;
    } else {
      any_digit = true;
      result.digits.push_back(rest[0]);
      if (!point) ++before_point;
    }
    rest.remove_prefix(1);
  }
  if (!any_digit) return NotANumber(text);

  int64_t power = 0;
  if (!rest.empty() && (rest[0] == 'e' || rest[0] == 'E')) {
    rest.remove_prefix(1);
    if (!rest.empty() && rest[0] == '+') {
      rest.remove_prefix(1);
      if (!rest.empty() && rest[0] == '-') return NotANumber(text);
    }
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), power);
    if (error != std::errc() || end != rest.data() + rest.size()) return NotANumber(text);
    rest = {};
  }
  if (!rest.empty()) return NotANumber(text);

  const size_t leading = result.digits.find_first_not_of('0');
  if (leading == std::string::npos) return Decimal();
  result.digits.erase(0, leading);
  result.digits.erase(result.digits.find_last_not_of('0') + 1);
  // The power alone is clamped first: the sum must not overflow.
  constexpr int64_t kFar = int64_t{1} << 62;
  result.exponent = before_point - static_cast<int64_t>(leading) + std::clamp(power, -kFar, kFar);
  if (result.exponent > kMaxDecimalExponent || result.exponent < -kMaxDecimalExponent) {
    return InvalidArgument("\"" + std::string(text.substr(0, 60)) +
                           "\" is out of range: a decimal's power of ten must lie within 10^9");
  }
  return result;
}

Decimal Decimal::FromDouble(double d) {
  assert(std::isfinite(d));
  // The longest exact expansion of a double has 767 significant digits.
  char buffer[800];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof(buffer), d, std::chars_format::scientific, 766);
  assert(error == std::errc());
  auto result = Parse({buffer, static_cast<size_t>(end - buffer)});
  assert(result.ok());
  return *std::move(result);
}

std::string Decimal::ToString() const {
  if (digits.empty()) return "0";
  std::string out = negative ? "-" : "";
  const auto size = static_cast<int64_t>(digits.size());
  if (exponent > 0 && exponent <= 40) {
    if (exponent >= size) {
      out += digits;
      out.append(exponent - size, '0');
    } else {
      out += digits.substr(0, exponent);
      out += '.';
      out += digits.substr(exponent);
    }
  } else if (exponent <= 0 && exponent > -10) {
    out += "0.";
    out.append(-exponent, '0');
    out += digits;
  } else {
    out += digits[0];
    if (size > 1) {
      out += '.';
      out += digits.substr(1);
    }
    out += 'e';
    out += std::to_string(exponent - 1);
  }
  return out;
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  const auto sign = [](const Decimal& d) { return d.digits.empty() ? 0 : d.negative ? -1 : 1; };
  if (sign(a) != sign(b)) return sign(a) <=> sign(b);
  if (sign(a) == 0) return std::strong_ordering::equal;
  auto magnitude = a.exponent <=> b.exponent;
  if (magnitude == 0) magnitude = a.digits.compare(b.digits) <=> 0;
  return a.negative ? 0 <=> magnitude : magnitude;
}

}  // namespace tamis
