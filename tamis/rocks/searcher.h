// Searcher: answers one range of a search request in one region, from one snapshot.
//
// Branches (SearchPlan) are taken in order. In each, the index stream with the fewest entries
// drives (BranchStreams) and is walked (StreamWalk), others are joined with it where that pays
// (StreamJoins); or rows are scanned, or sorted (EntrySort), where that costs less (SearchCost).
// Every row found is read, checked against the whole predicate of its branch, and left out when an
// earlier branch matches it as well: that branch returns it (CandidateRows). Entries that do not
// belong to the region's key range are garbage and skipped.
//
// A continuation names the branch, the driving index, and the position: a row key, or an entry of
// the driving index. It makes a claim about rows ("everything up to here in this order is done"),
// so it holds for the daughters of a region that was split meanwhile.
//
// Threads: const after construction; Search may run concurrently.
#pragma once

#include <memory>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/search_plan.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class Searcher {
 public:
  // Parses and checks what all ranges of a request share whose regions follow the same schema
  // (SearchPlan). `context` and `request` must outlive it.
  static Result<std::unique_ptr<Searcher>> Create(const ServerContext& context,
                                                  const pb::SearchRequest& request,
                                                  SchemaPtr schema);

  // kUnavailable in the result when the region is not here at this epoch. `max_rows` is at least 1.
  // Ends soon after the deadline with a continuation, but not before at least one entry or row.
  pb::RangeResult Search(const Region& region, const pb::SearchRange& range, uint64_t max_rows,
                         Time deadline) const;

 private:
  class Run;

  Searcher(const ServerContext& context, SearchPlan plan)
      : context_(context), plan_(std::move(plan)) {}

  const ServerContext& context_;
  const SearchPlan plan_;
};

}  // namespace tamis
