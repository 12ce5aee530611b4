// ExclusionReasons: for each region that overlaps the searched keys, why it was excluded, or that
// it was not. Shown to users; a search does not need it.
//
//   Threads   const access to the table
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tamis/routing/key_ranges.h"
#include "tamis/routing/routing_term.h"

namespace tamis {

class RegionBits;
struct RoutedTable;

struct ExclusionReasons {
  enum class Reason { kFilter, kCells, kRange };

  uint64_t regions = 0;
  uint64_t excluded_by_filter = 0;
  uint64_t excluded_by_cells = 0;
  uint64_t excluded_by_range = 0;
  // Regions that were not excluded because there is no lease or no filter for them. A region that
  // the present copy would exclude is among them: the search had no lease or no filter for it.
  uint64_t unknown = 0;
  std::vector<std::string> candidates;  // start keys of the other regions that were not excluded
  // The start keys of excluded regions; only with each_excluded.
  std::vector<std::pair<std::string, Reason>> excluded;
};

// `excluded` are the ranges that a search excluded. The table is evaluated as it is now; the bits
// of `without_lease`, by slot, are those of regions whose servers have no lease. Visits all regions
// that overlap the keys.
ExclusionReasons ExplainExclusions(const RoutedTable& table, const RegionBits& without_lease,
                                   const KeyRanges& keys, const RoutingTerm& term,
                                   const KeyRanges& excluded, bool each_excluded);

}  // namespace tamis
