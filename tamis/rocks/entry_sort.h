// EntrySort: puts rows into the order of an index's entries in which a search counts, where the
// entries cannot be walked or cost more than the rows. It keeps the first of them that are still to
// come.
//
// The jar has the same class.
//
// Threads: exclusive access. Everything given to it outlives it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/least_entries.h"
#include "tamis/rocks/region_snapshot.h"
#include "tamis/rocks/search_page.h"
#include "tamis/rocks/search_position.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/schema.h"

namespace tamis {

class EntrySort {
 public:
  // `order` is the stream of `index` in whose ranges the search counts, from `position`.
  EntrySort(const ServerContext& context, const TableSchema& schema, const IndexSpec& index,
            const pb::IndexStream& order, const SearchPosition& position, RegionSnapshot* snapshot,
            SearchPage* page);

  // The entries of all rows. When the time is over, the searched range ends before the next row;
  // nullptr if the page has rows then, which are of the whole range.
  Result<const LeastEntries*> OfRows();
  // The entries of the rows of an opened stream.
  Result<const LeastEntries*> OfStream(BranchStreams::Stream* stream);

 private:
  // The row key of the next entry of the stream; of an equality, the first one from `from`.
  Result<std::optional<std::string>> NextKey(BranchStreams::Stream* stream,
                                             const std::string& from) const;
  Status AddRows(const std::vector<std::string>& keys);
  // Adds the entry of the row if it is still to come.
  Status AddRow(std::string_view key, std::string_view stored);

  const TableSchema& schema_;
  const IndexSpec& index_;
  const pb::IndexStream& order_;
  const SearchPosition& position_;
  RegionSnapshot& snapshot_;
  SearchPage& page_;
  LeastEntries least_;
};

}  // namespace tamis
