// FitCellMap: a cell map by the values that an index holds now.
#pragma once

#include <cstdint>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/rocks/store.h"
#include "tamis/rocks/store.pb.h"
#include "tamis/table/cell_map.h"
#include "tamis/table/schema.h"

namespace tamis {

// Reads all entries of the regions. `cells_per_value`: for a region of mean size.
Result<CellMap> FitCellMap(const Store& store, const TableSchema& schema, const IndexSpec& index,
                           const std::vector<pb::RegionRecord>& regions, uint32_t cells_per_value);

}  // namespace tamis
