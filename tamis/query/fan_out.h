// FanOut: asks the servers of the regions for the rows of one plan, and gives the rows out as the
// answers come.
//
// The keys of the plan are cut into sub-ranges (coverage.h). A sub-range is done when a region
// server has searched it to its end, or when the filters prove, at or after the start of the
// search, that it holds no match. A sub-range that was not searched (the region moved, was split,
// its server died) is asked again, with a region map that is fresh there. So nothing was left out
// when Next says that there is no further row.
//
// Several requests of a few ranges each are under way at a time, to one server and to all
// (due_requests.h); rows are given out as servers answer, so that a server that does not answer
// delays only its own rows (in key order, later ones too). In an order of the plan they are merged
// (ordered_merge.h).
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/query/coverage.h"
#include "tamis/query/due_requests.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/row_queue.h"
#include "tamis/query/search_account.h"
#include "tamis/query/search_options.h"
#include "tamis/query/search_requests.h"

namespace tamis {

class FanOut {
 public:
  // The options and the account outlive it.
  FanOut(std::shared_ptr<QueryContext> context, SchemaPtr schema, const SearchOptions& options,
         SearchAccount* account);

  // Begins with a plan, which stays where it is until the next one. REQUIRES: there was no plan
  // before, or Next has given out all of its rows. Sends nothing.
  void Begin(const Plan& plan, Time deadline);
  // Whether several regions may be asked, as far as is known. One region gives no row too many.
  bool MayAskSeveral() const;

  struct Wanted {
    std::vector<uint32_t> columns = {};  // positions
    uint64_t at_once = 0;                // rows that the caller wants at once; 0: all
    uint64_t limit = 0;                  // no more rows are taken out of an order; 0: all may be
    bool groups = false;                 // rows may come as groups
  };
  // REQUIRES: Begin was called, and Next was not since.
  void SetWanted(const Wanted& wanted);
  void StopGrouping() { due_requests_.StopGrouping(); }

  // The next row, with all columns that were asked for. nullopt: there is none.
  Result<std::optional<RowGroup>> Next();
  // The row of this key, which was given out in an order, may come again.
  void Forget(const std::string& key) { rows_.Forget(key); }

  // nullptr: not known yet.
  const TableCache::Regions& regions() const { return regions_; }

 private:
  void Exclude();
  Status Advance();
  Status CheckTime(Time now) const;
  Time NextLook() const;
  void GiveUpLate(Time now);
  void RefreshMap();
  Status TakeMap(const SearchRequests::Regions& regions);
  void Send(Time now);
  Status TakeReply(const ServerRequest& request, Result<pb::SearchReply> reply);
  bool Take(const std::string& server, const AskedSubRange& part, const pb::RangeResult& result);

  const std::shared_ptr<QueryContext> context_;
  const SchemaPtr schema_;
  const SearchOptions& options_;
  SearchAccount& account_;
  const Plan* plan_ = nullptr;
  Time deadline_{};
  TableCache::Regions regions_;
  Coverage coverage_;
  RowQueue rows_;
  DueRequests due_requests_;
  SearchRequests requests_;
};

}  // namespace tamis
