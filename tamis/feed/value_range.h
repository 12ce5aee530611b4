// ValueRange: the smallest and the largest of some encoded values, both included. A range without a
// value is nullopt.
//
// The jar has the same class.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tamis {

using ValueRange = std::pair<std::string, std::string>;

inline bool Covers(const std::optional<ValueRange>& range, std::string_view value) {
  return range.has_value() && range->first <= value && value <= range->second;
}

// Returns whether it has become wider.
inline bool Widen(std::optional<ValueRange>* range, std::string_view value) {
  if (!range->has_value()) {
    range->emplace(value, value);
  } else if (value < (*range)->first) {
    (*range)->first = value;
  } else if (value > (*range)->second) {
    (*range)->second = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace tamis
