// RoutingTerm: what is asked of the copies of filters: a condition's hashes and encoded values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tamis {

// The form of a predicate that routing uses: hashes and encoded values instead of columns and
// values.
struct RoutingTerm {
  enum class Kind { kAll, kNone, kAnd, kOr, kValue, kRange };
  Kind kind = Kind::kAll;
  uint32_t index_id = 0;
  uint64_t hash = 0;      // kValue: of a leading prefix of the encoded values
  std::string first;      // kValue: the first encoded value
  std::string low, high;  // kRange: low <= first encoded value < high; empty high = no bound
  std::vector<RoutingTerm> children;

  static RoutingTerm All() { return {}; }
};

}  // namespace tamis
