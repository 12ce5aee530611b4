// KeyRanges: a set of row keys as sorted, disjoint, non-touching half-open ranges. With it a search
// proves that what was searched and what was excluded tile the table.
//
// Adding or subtracting one range finds its place among many by binary search.
//
// Threads: a value.
#pragma once

#include <string_view>
#include <vector>

#include "tamis/table/key_range.h"

namespace tamis {

class KeyRanges {
 public:
  KeyRanges() = default;  // no keys
  static KeyRanges All() { return Of({"", ""}); }
  static KeyRanges Of(KeyRange range);

  void Reserve(size_t ranges) { ranges_.reserve(ranges); }
  void Add(KeyRange range);
  void Add(const KeyRanges& other);
  void Subtract(const KeyRange& range);
  void Subtract(const KeyRanges& other);
  KeyRanges Intersect(const KeyRange& range) const;
  KeyRanges Intersect(const KeyRanges& other) const;

  bool Contains(std::string_view key) const;
  bool Overlaps(const KeyRange& range) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<KeyRange>& ranges() const { return ranges_; }

  friend bool operator==(const KeyRanges&, const KeyRanges&) = default;

 private:
  std::vector<KeyRange> ranges_;
};

}  // namespace tamis
