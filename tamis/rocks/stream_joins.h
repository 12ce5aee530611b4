// StreamJoins: the streams of a branch that are joined with the one that drives it, so that rows
// which are not in all of them are never read.
//
// The first rows read show how many of the rows that the driving stream finds are in each other
// stream. One that few of them are in, and that costs less to read than the rows that it spares, is
// joined: an equality beside a driving equality as a zigzag join by row key, any other as the set
// of its row keys, which is held in memory.
//
// Threads: exclusive access. Everything given to it outlives it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/search_cost.h"
#include "tamis/rocks/search_page.h"
#include "tamis/table/row.h"

namespace tamis {

class StreamJoins {
 public:
  StreamJoins(const ServerContext& context, const RegionSnapshot& snapshot,
              const TableSchema& schema, const SearchCost& cost, SearchPage* page,
              BranchStreams* streams, BranchStreams::Stream* driving)
      : context_(context),
        snapshot_(snapshot),
        schema_(schema),
        cost_(cost),
        page_(*page),
        streams_(*streams),
        driving_(*driving),
        rows_before_(page->rows()) {}

  // Notes in which of the other streams the row has an entry.
  void Sample(const Row& row, std::string_view key);
  // Joins the streams that spare more than they cost, once enough rows were looked at.
  Status Join();

  // Equalities joined by row key: a row is in all of them, or not found.
  const std::vector<BranchStreams::Stream*>& zigzag() const { return zigzag_; }
  // Whether the row key is in each set that was joined.
  bool Contains(const std::string& key) const;

 private:
  Status Join(BranchStreams::Stream* stream, uint64_t most);
  double EntriesLeft();

  const ServerContext& context_;
  const RegionSnapshot& snapshot_;
  const TableSchema& schema_;
  const SearchCost& cost_;
  SearchPage& page_;
  BranchStreams& streams_;
  BranchStreams::Stream& driving_;
  const uint64_t rows_before_;  // rows of earlier branches in the page
  uint64_t sampled_ = 0;        // rows
  bool is_decided_ = false;
  std::vector<BranchStreams::Stream*> zigzag_;
  std::vector<std::unordered_set<std::string>> key_sets_;
};

}  // namespace tamis
