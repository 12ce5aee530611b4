// Repairs of the entries of a region's indexes, by their rows: the entries that rows lack are
// written and counted, and the entries that no row gives are removed.
//
// kUnavailable: the region has moved, and nothing was written; other errors: the store could not be
// read or written. REQUIRES: the rows that the entries belong to are locked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/feed/index_filter.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/schema.h"

namespace tamis {

struct RepairedIndex {
  uint32_t index_id = 0;
  std::shared_ptr<IndexFilter> filter;
};

Status RegionMoved();

// Writes and counts the entries that the rows under these keys, in order, lack in the indexes.
Status WriteMissingEntries(const ServerContext& context, Region& region, const TableSchema& schema,
                           std::span<const RepairedIndex> indexes,
                           const std::vector<std::string>& keys);

// Removes the entries (without the index's prefix) that no row gives. A removed entry stays counted
// until the recount.
Status RemoveForeignEntries(const ServerContext& context, Region& region, const TableSchema& schema,
                            const RepairedIndex& index, std::span<const std::string> entries);

}  // namespace tamis
