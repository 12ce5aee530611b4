#include "tamis/guard/number_form.h"

#include <algorithm>

namespace tamis {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t DigitsOf(std::string_view text) {
  return static_cast<size_t>(std::ranges::find_if_not(text, IsDigit) - text.begin());
}

// How many separators of groups are in the number; 0: it has no groups. `point`: they are points.
size_t GroupsOf(std::string_view text, bool* point) {
  constexpr std::string_view kSeparators[] = {
      ",", ".", "'", "_", " ", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x99"};
  const size_t first = DigitsOf(text);
  if (first < 1 || first > 3) return 0;
  text.remove_prefix(first);
  for (const std::string_view separator : kSeparators) {
    size_t groups = 0;
    std::string_view rest = text;
    while (rest.starts_with(separator) && DigitsOf(rest.substr(separator.size())) == 3) {
      rest.remove_prefix(separator.size() + 3);
      ++groups;
    }
    *point = separator == ".";
    if (groups > 0 && rest.empty()) return groups;
  }
  return 0;
}

// "1.2E+09", "5e3".
bool HasExponent(std::string_view text) {
  const size_t at = text.find_first_of("eE");
  if (at == text.npos || at == 0) return false;
  std::string_view exponent = text.substr(at + 1);
  if (exponent.starts_with('+') || exponent.starts_with('-')) exponent.remove_prefix(1);
  std::string_view number = text.substr(0, at);
  number.remove_prefix(DigitsOf(number));
  if (number.starts_with('.')) number.remove_prefix(1);
  return DigitsOf(number) == number.size() && !exponent.empty() &&
         DigitsOf(exponent) == exponent.size();
}

bool HasFractionOfZeros(std::string_view text) {
  const size_t digits = DigitsOf(text);
  return digits > 0 && text.size() > digits + 1 && text[digits] == '.' &&
         text.find_first_not_of('0', digits + 1) == text.npos;
}

}  // namespace

void NumberForm::Add(std::string_view key) {
  if (others_) return;
  ++keys_;
  if (key.starts_with('-')) key.remove_prefix(1);
  if (key.empty() || !IsDigit(key.front())) {
    others_ = true;
    return;
  }
  if (const size_t digits = DigitsOf(key); digits == key.size()) {
    if (digits <= 3) {
      ++short_;
    } else {
      others_ = true;
    }
    return;
  }
  bool point = false;
  const size_t groups = GroupsOf(key, &point);
  const bool zeros = HasFractionOfZeros(key);
  const bool exponent = HasExponent(key);
  groups_ += groups > 0 ? 1 : 0;
  several_ += groups > 1 || (groups == 1 && !point) ? 1 : 0;
  zeros_ += zeros ? 1 : 0;
  exponents_ += exponent ? 1 : 0;
  others_ = groups == 0 && !zeros && !exponent;
}

std::string_view NumberForm::Fault() const {
  if (others_ || keys_ < 2) return "";
  if (zeros_ == keys_) return "a fraction of zeros";
  if (exponents_ == keys_) return "an exponent";
  // A single group after a point may be a fraction, unless other numbers have none.
  const bool grouped = several_ > 0 || (groups_ > 0 && short_ > 0);
  return grouped && groups_ + short_ == keys_ ? "digits in groups" : "";
}

}  // namespace tamis
