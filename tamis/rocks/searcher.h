// Searcher: answers one range of a search request in one region, from one snapshot.
//
// Branches are taken in order. In each, the index stream with the fewest entries drives
// (BranchStreams), others are joined with it where that pays (StreamJoins), or rows are scanned
// where that costs less (SearchCost). Every row found is read, checked against the whole predicate
// of its branch, and left out when an earlier branch matches it as well: that branch returns it.
// Entries that do not belong to the region's key range are garbage and skipped.
//
// A continuation names the branch, the driving index, and the position: a row key, or an entry of
// the driving index. It makes a claim about rows ("everything up to here in this order is done"),
// so it holds for the daughters of a region that was split meanwhile.
//
// Threads: const after construction; Search may run concurrently.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/search_page.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/predicate.h"

namespace tamis {

class Searcher {
 public:
  // Parses and checks what all ranges of a request share whose regions follow the same schema. That
  // may be an older one than the request's: what it does not know of indexes is scanned, what it
  // does not know of columns is kUnavailable. `context` and `request` must outlive it.
  static Result<std::unique_ptr<Searcher>> Create(const ServerContext& context,
                                                  const pb::SearchRequest& request,
                                                  SchemaPtr schema);

  // kUnavailable in the result when the region is not here at this epoch. `max_rows` is at least 1.
  // Ends soon after the deadline with a continuation, but not before it has come some way.
  pb::RangeResult Search(const Region& region, const pb::SearchRange& range, uint64_t max_rows,
                         Time deadline) const;

 private:
  class Run;
  struct Branch {
    Predicate predicate;
    const pb::Branch* plan;
    std::vector<bool> needed;  // columns, by position: wanted, or of this or an earlier condition
  };

  Searcher(const ServerContext& context, const pb::SearchRequest& request, SchemaPtr schema)
      : context_(context), request_(request), schema_(std::move(schema)) {}

  const ServerContext& context_;
  const pb::SearchRequest& request_;
  const SchemaPtr schema_;
  std::vector<Branch> branches_;
  Status CheckGrouping();
  std::optional<SearchPage::Grouping> Grouping() const;

  std::vector<bool> wanted_;      // by column position
  std::vector<uint32_t> totals_;  // positions, as the request names them
};

}  // namespace tamis
