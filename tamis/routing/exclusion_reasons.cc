#include "tamis/routing/exclusion_reasons.h"

#include <algorithm>
#include <cstddef>

#include "tamis/routing/region_bits.h"
#include "tamis/routing/routed_table.h"

namespace tamis {

ExclusionReasons ExplainExclusions(const RoutedTable& table, const RegionBits& without_lease,
                                   const KeyRanges& keys, const RoutingTerm& term,
                                   const KeyRanges& excluded, bool each_excluded) {
  using Reason = ExclusionReasons::Reason;
  ExclusionReasons reasons;
  const TableLayout& layout = table.layout;
  const RegionBits by_range = table.MayHold(term, RoutedTable::By::kRanges);
  const RegionBits by_cells = table.MayHold(term, RoutedTable::By::kCells);
  const RegionBits by_all = table.MayHold(term, RoutedTable::By::kFilters);
  RegionBits unknown = without_lease;
  table.AddUnknown(term, &unknown);
  size_t next = 0;  // position; ranges may lie in one region
  for (const KeyRange& range : keys.ranges()) {
    const auto [begin, end] = layout.Positions(range);
    for (size_t i = std::max(begin, next); i < end; ++i) {
      ++reasons.regions;
      const TableLayout::Slot slot = layout.at(i);
      const std::string& start = layout.range(slot).start;
      if (!excluded.Contains(std::max(start, range.start))) {
        if (unknown.Get(slot) || !by_all.Get(slot)) {
          ++reasons.unknown;
        } else {
          reasons.candidates.push_back(start);
        }
        continue;
      }
      const Reason reason = !by_range.Get(slot)   ? Reason::kRange
                            : !by_cells.Get(slot) ? Reason::kCells
                                                  : Reason::kFilter;
      ++(reason == Reason::kRange   ? reasons.excluded_by_range
         : reason == Reason::kCells ? reasons.excluded_by_cells
                                    : reasons.excluded_by_filter);
      if (each_excluded) reasons.excluded.emplace_back(start, reason);
    }
    next = std::max(next, end);
  }
  const uint64_t undecided = layout.Undecided(keys);
  reasons.regions += undecided;
  reasons.unknown += undecided;
  return reasons;
}

}  // namespace tamis
