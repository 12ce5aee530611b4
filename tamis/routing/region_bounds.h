// RegionBounds: where the values of an index begin or end in each region of a table.
//
//   Threads   const access to the table
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tamis/routing/key_ranges.h"
#include "tamis/table/cell_map.h"

namespace tamis {

class IndexCopies;
class RegionBits;
class TableLayout;

// The smallest or the largest value of the first column of an index in one region.
struct RegionBound {
  KeyRange keys;                     // keys of the region
  std::optional<std::string> value;  // encoded; nullopt: no entry
};

// The values that a search wants of that column: low <= value < high; an empty high is no bound.
// By the map of the index's cells, bounds lie closer to the values that are wanted. The largest
// value by cells is an upper bound, not a stored value, and perhaps a longer string.
struct WantedValues {
  std::string low, high;
  const CellMap* cells;  // nullptr: all values are
};

// The bounds of the placed regions that overlap the keys, in key order, without those whose bit, by
// slot, is set in `unknown`.
std::vector<RegionBound> RegionBounds(const TableLayout& layout, const IndexCopies& copies,
                                      const RegionBits& unknown, const KeyRanges& keys,
                                      bool largest, const WantedValues& wanted);

}  // namespace tamis
