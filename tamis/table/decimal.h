// Decimal: an exact decimal number of any length, as sign, digits and power of ten.
//
// The text form is canonical: one number, one text. Plain notation near the point ("-12.5",
// "0.001", "1000"), scientific far from it ("1.25e300"), no leading or trailing zeros, no "-0".
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis {

// The power of ten of a decimal stays within this, so that its ordered encoding has a fixed width.
inline constexpr int64_t kMaxDecimalExponent = 1'000'000'000;

struct Decimal {
  bool negative = false;
  std::string digits;    // "125" and exponent 2 is 0.125 x 10^2; no zeros at either end; empty = 0
  int64_t exponent = 0;  // 0 when the number is 0

  // "-12.50e3" as a person writes it; refuses what is no number or beyond kMaxDecimalExponent.
  static Result<Decimal> Parse(std::string_view text);
  // The exact value of a finite double. REQUIRES: finite.
  static Decimal FromDouble(double d);

  std::string ToString() const;

  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
  friend bool operator==(const Decimal& a, const Decimal& b) = default;
};

}  // namespace tamis
