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
  // kRange: the cells of the values by the index's cell map, first and last; version 0: it has
  // none.
  uint64_t cell_map = 0;
  uint32_t first_cell = 0, last_cell = 0;
  std::vector<RoutingTerm> children;

  static RoutingTerm All() { return {}; }
};

}  // namespace tamis
