// DueRequests: the requests that a search may send now: which of the due sub-ranges, how many at a
// time, and for how many rows.
//
// Rows in an order are asked for in rounds (ordered_rounds.h). A caller that wants a number of rows
// at once gets no more requests under way than it takes to find them soon; without a limit all due
// sub-ranges are asked. In key order the later sub-ranges of a server are asked once, then only the
// one whose rows are next.
//
// Threads: exclusive access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/query/coverage.h"
#include "tamis/query/ordered_merge.h"
#include "tamis/query/ordered_rounds.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/request_writer.h"
#include "tamis/query/search_options.h"
#include "tamis/query/search_requests.h"

namespace tamis {

class DueRequests {
 public:
  // The options and the coverage outlive it.
  DueRequests(std::shared_ptr<QueryContext> context, SchemaPtr schema, const SearchOptions& options,
              Coverage* coverage)
      : context_(std::move(context)),
        options_(options),
        coverage_(*coverage),
        writer_(std::move(schema), options_) {}

  // The next requests are those of this plan, which outlives them. SetWanted follows.
  void Begin(const Plan& plan);
  // The positions of the columns; the rows that the caller wants at once, 0: all; whether rows may
  // come as groups.
  void SetWanted(std::vector<uint32_t> columns, uint64_t at_once, bool groups);
  void StopGrouping() { grouping_ = false; }

  // The requests for sub-ranges that may be asked at `now`, as many as may be under way besides
  // those that are. `merge` is that of the plan's order, nullptr if it has none. REQUIRES: the
  // sub-ranges are placed (Coverage::PlaceIdle).
  std::vector<ServerRequest> Make(const OrderedMerge* merge, size_t under_way, Time now,
                                  Time deadline);

  // Whether rows come in an order of an index or of the key.
  bool in_order() const { return rounds_.has_value(); }
  void NoteRowsFetched(uint64_t rows) { fetched_ += rows; }
  void NoteRowsGiven(uint64_t rows);
  // The server failed to answer for this reason. True: it refuses the order, and is asked without
  // one from now on.
  bool NoteRefusal(const ServerRequest& request, const Status& status);

 private:
  ServerRequest MakeOne(DueSubRanges::Server* server, Time now, Time deadline);
  uint64_t Missing() const;  // rows that the next replies should have; 0 = no limit
  uint64_t RequestLimit() const;

  const std::shared_ptr<QueryContext> context_;
  const SearchOptions& options_;
  Coverage& coverage_;
  RequestWriter writer_;
  const Plan* plan_ = nullptr;
  std::optional<OrderedRounds> rounds_;  // in an order
  uint64_t at_once_ = 0;
  bool grouping_ = false;
  uint64_t fetched_ = 0;  // rows in sub-ranges or given
  uint64_t given_ = 0;
};

}  // namespace tamis
