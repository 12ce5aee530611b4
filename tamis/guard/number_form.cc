#include "tamis/guard/number_form.h"

#include <algorithm>

#include "tamis/base/ascii.h"

namespace tamis {
namespace {

size_t DigitsOf(std::string_view text) {
  return static_cast<size_t>(std::ranges::find_if_not(text, IsDigit) - text.begin());
}

// The groups of three digits behind the first digits of a number; 0: it has none.
struct Groups {
  uint64_t count = 0;
  std::string_view separator;
};

Groups GroupsOf(std::string_view text) {
  constexpr std::string_view kSeparators[] = {
      ",", ".", "'", "_", " ", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x99"};
  const size_t first = DigitsOf(text);
  if (first < 1 || first > 3) return {};
  text.remove_prefix(first);
  for (const std::string_view separator : kSeparators) {
    Groups groups = {0, separator};
    std::string_view rest = text;
    while (rest.starts_with(separator) && DigitsOf(rest.substr(separator.size())) == 3) {
      rest.remove_prefix(separator.size() + 3);
      ++groups.count;
    }
    if (groups.count > 0 && rest.empty()) return groups;
  }
  return {};
}

// "192.168.100.101", a number of `groups`.
bool IsAddress(std::string_view text, const Groups& groups) {
  if (groups.count != 3 || groups.separator != ".") return false;
  int part = 0;
  for (const char c : text) {
    part = IsDigit(c) ? part * 10 + (c - '0') : 0;
    if (part > 255) return false;
  }
  return true;
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

void NumberForm::AddWidth(std::string_view key) {
  if (widths_++ == 0) width_ = key.size();
  if (key.size() != width_ || DigitsOf(key) != key.size()) width_ = 0;
  zero_in_front_ = zero_in_front_ || key.starts_with('0');
}

void NumberForm::Add(std::string_view key) {
  AddWidth(key);
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
  const Groups groups = GroupsOf(key);
  const bool zeros = HasFractionOfZeros(key);
  const bool exponent = HasExponent(key);
  if (groups.count > 0) {
    const bool joins = groups.separator == "_" || groups.separator == " ";
    const bool fraction = groups.separator == "." && groups.count == 1;
    least_groups_ = groups_ == 0 ? groups.count : std::min(least_groups_, groups.count);
    most_groups_ = std::max(most_groups_, groups.count);
    ++groups_;
    several_ += joins || fraction ? 0 : 1;
    addresses_ += IsAddress(key, groups) ? 1 : 0;
  }
  zeros_ += zeros ? 1 : 0;
  exponents_ += exponent ? 1 : 0;
  signed_exponents_ += exponent && key.find_first_of(".+-") != key.npos ? 1 : 0;
  others_ = groups.count == 0 && !zeros && !exponent;
}

std::string_view NumberForm::Fault() const {
  if (widths_ >= 2 && width_ >= 2 && zero_in_front_) return "zeros in front, all of one width";
  if (others_ || keys_ < 2) return "";
  if (zeros_ == keys_) return "a fraction of zeros";
  if (exponents_ == keys_ && signed_exponents_ > 0) return "an exponent";
  if (groups_ + short_ != keys_ || addresses_ == keys_) return "";
  // A single group after a point may be a fraction, unless other numbers have none.
  const bool grouped = several_ > 0 || (groups_ > 0 && short_ > 0) || least_groups_ != most_groups_;
  return grouped ? "digits in groups" : "";
}

}  // namespace tamis
