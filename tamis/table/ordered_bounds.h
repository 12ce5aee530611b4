// OrderedBounds: the stretch of ordered encodings (codec.h) in which all values lie that a
// condition on their column allows.
#pragma once

#include <optional>
#include <string>

#include "tamis/table/predicate.h"

namespace tamis {

// low <= encoded < high, as bytes; an empty high is no bound.
struct OrderedBounds {
  std::string low;
  std::string high;

  bool IsEmpty() const { return !high.empty() && low >= high; }
  // Leaves what both allow.
  void Narrow(const OrderedBounds& other);
};

// The bounds in the encoding of index entries when `indexed`, else of keys. Wider than the
// condition where a long value is cut; nullopt for a condition that is no range.
std::optional<OrderedBounds> BoundsOf(const Predicate& leaf, bool indexed);

}  // namespace tamis
