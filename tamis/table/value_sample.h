// ValueSample: some of the distinct values that an index holds, by which a cell map is fitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tamis/table/cell_map.h"

namespace tamis {

// A sample of one or several regions: each of their distinct values has the same chance to be in
// it.
struct ValueSample {
  std::vector<std::string> values;  // sorted
  uint64_t distinct = 0;            // values of the regions; at least as many as there are here
};

// A map of so many cells for each distinct value of a region of mean size. The samples together are
// those of all regions of the index, `regions` in number.
CellMap FitCellMap(const std::vector<ValueSample>& samples, size_t regions,
                   uint32_t cells_per_value);

}  // namespace tamis
