// KeyRange: the row keys from one to another.
//
// Threads: a value.
#pragma once

#include <string>
#include <string_view>

namespace tamis {

struct KeyRange {
  std::string start;  // inclusive
  std::string end;    // exclusive; empty = no bound

  bool empty() const { return !end.empty() && start >= end; }
  bool Contains(std::string_view key) const { return key >= start && (end.empty() || key < end); }
  bool Overlaps(const KeyRange& other) const {
    return (end.empty() || other.start < end) && (other.end.empty() || start < other.end);
  }

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

}  // namespace tamis
