// StreamWalk: the way along the driving stream of a branch, in its order: to the row keys that are
// in all joined streams, or, where the entries say to which group their rows belong, to the groups.
//
// A driving equality is walked by row key, any other stream by entry. A walk that stops before the
// end leaves the position at the last row, or entry, that is done.
//
// Threads: exclusive access. Everything given to it outlives it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/candidate_rows.h"
#include "tamis/rocks/region_snapshot.h"
#include "tamis/rocks/search_cost.h"
#include "tamis/rocks/search_page.h"
#include "tamis/rocks/search_plan.h"
#include "tamis/rocks/search_position.h"
#include "tamis/rocks/stream_joins.h"

namespace tamis {

class StreamWalk {
 public:
  StreamWalk(const ServerContext& context, const SearchPlan& plan, const RegionSnapshot& snapshot,
             const SearchCost& cost, BranchStreams* streams, BranchStreams::Stream* driving,
             SearchPage* page, SearchPosition* position)
      : plan_(plan),
        snapshot_(snapshot),
        streams_(*streams),
        driving_(*driving),
        page_(*page),
        position_(*position),
        joins_(context, snapshot, *plan.schema(), cost, page, streams, driving),
        candidates_(plan, snapshot, page, position, &joins_) {}

  // True at the end of the stream. A stream that is no equality needs a position by entry.
  Result<bool> Walk() { return driving_.equality() ? WalkKeys() : WalkEntries(); }

 private:
  Result<bool> WalkKeys();
  Result<bool> WalkEntries();
  // Candidates that are read at once, after so many.
  uint64_t BatchSize(uint64_t considered) const;
  // An entry that broke a stream looks like its end.
  Status CheckStreams() const;

  // Count the row of an entry, or of a row key that was found, where the values of the entry say to
  // which group it belongs; else they are false.
  Result<bool> CountEntry(std::string_view entry);
  Result<bool> CountKey(std::string_view values, const std::string& key);
  // False: the entry does not prove its row.
  bool CountRow(std::string_view deciding, std::string_view values, std::string_view key);
  // The row of an entry of the driving stream; nullopt: it must be read.
  std::optional<Row> RowOf(std::string_view values, std::string_view key,
                           std::string_view included) const {
    return driving_.rows.has_value() ? driving_.rows->Read(values, key, included) : std::nullopt;
  }

  const SearchPlan& plan_;
  const RegionSnapshot& snapshot_;
  BranchStreams& streams_;
  BranchStreams::Stream& driving_;
  SearchPage& page_;
  SearchPosition& position_;
  StreamJoins joins_;  // beside the driving stream
  CandidateRows candidates_;
};

}  // namespace tamis
