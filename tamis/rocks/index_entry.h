// IndexEntry: what a row puts into one index.
#pragma once

#include <optional>
#include <string>

#include "tamis/feed/index_filter.h"
#include "tamis/rocks/store.h"
#include "tamis/table/codec.h"

namespace tamis {

struct IndexEntry {
  std::string values;  // encoded, as they stand in the entry's key
  EntryKey filter_key;
  std::string included;  // the value of the entry: its included columns, as a stored row

  // nullopt: the row has none, since the index is sparse or partial.
  static std::optional<IndexEntry> Of(const TableSchema& schema, const IndexSpec& index,
                                      const Row& row);
  // From the encoded values of an entry that stands in the store; without the included columns.
  static Result<IndexEntry> OfValues(const TableSchema& schema, const IndexSpec& index,
                                     std::string_view values);

  std::string StoreKey(uint64_t region_id, uint32_t index_id, std::string_view row_key) const {
    return IndexPrefix(region_id, index_id) + values + std::string(row_key);
  }
};

}  // namespace tamis
