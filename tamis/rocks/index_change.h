// IndexChange: what the write of some rows changes in one index of their region: entries in the
// store, and values in the filter.
//
// Threads: as a value.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/feed/index_filter.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/row_change.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

struct IndexChange {
  std::shared_ptr<IndexFilter> filter;
  std::vector<EntryKey> add;
  IndexFilter::Ticket ticket = 0;  // the ticket of the entries that were added
  std::vector<EntryKey> remove;
  std::vector<EntryKey> held;  // the entries of every touched row as it is afterwards
  std::vector<std::pair<std::string, std::string>> puts;  // keys and values
  std::vector<std::string> delete_keys;

  // Adds what the changes of the rows, which are locked, mean for the index of `filter`. An error:
  // the store could not be read.
  Status Collect(const ServerContext& context, const RegionInfo& region, const TableSchema& schema,
                 uint32_t index_id, bool entries_complete, std::span<const RowChange> changes);
};

}  // namespace tamis
