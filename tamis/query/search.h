// Search: one search on its way: what is still to be covered, the pages that have come, the proof
// that nothing was left out.
//
// The keys that can match are cut into sub-ranges. A sub-range is done when a region server has
// searched it to its end, or when the filters prove, at or after the start of the search, that it
// holds no match. A sub-range that was not searched (the region moved, was split, its server died)
// is asked again, with a region map that is fresh there.
//
// Several requests of a few ranges each are under way at a time, to one server and to all; rows are
// given out as servers answer, so that one that does not answer delays its own rows alone (in key
// order, those behind them too).
//
// Threads: exclusive access.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/base/trace_context.h"
#include "tamis/query/coordinator.h"
#include "tamis/query/due_sub_ranges.h"
#include "tamis/query/explain.h"
#include "tamis/query/first_rows.h"
#include "tamis/query/ordered_merge.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/search_account.h"
#include "tamis/query/search_options.h"
#include "tamis/query/sub_range.h"
#include "tamis/table/row.h"

namespace tamis {

class Search final : public FoundRows {
 public:
  // Rows with other keys than `only` do not count.
  Search(std::shared_ptr<QueryContext> context, SchemaPtr schema, SearchOptions options,
         KeyRanges only = KeyRanges::All());

  // An exception on the way ends the search with its status.
  Result<std::optional<RowGroup>> Next() override;
  void StopGrouping() override { grouping_ = false; }
  // After an early end: the work done so far.
  const Explain& explain() override {
    Conclude();
    return account_.explain;
  }

 private:
  // A sub-range on its way to the region that holds it.
  struct Part {
    SubRangeAt sub_range;
    uint64_t region_id = 0;
    std::string region_start;
  };
  struct Request {
    std::string server;
    DueSubRanges::Server* due = nullptr;
    std::shared_ptr<pb::SearchRequest> request;
    std::vector<Part> parts;  // as request->ranges
    Time sent{};
    Time deadline{};
    std::shared_ptr<ServerLoads::Request> load;
  };
  Result<std::optional<RowGroup>> NextRow();
  Result<std::optional<RowGroup>> NextFound();   // as the servers give them, or merged
  Result<std::optional<RowGroup>> NextSorted();  // of all that there are
  Result<std::optional<RowGroup>> NextFirst();   // of entries that were found
  Status ReadRowsOf(const std::vector<Row>& entries);
  bool MayAskSeveralRegions() const;
  Status Begin();
  void MakePlanFor(const Predicate& predicate, const std::vector<OrderTerm>& order);
  void BeginOrder();
  // The rows with NULL, which follow in an order by a sparse index. False: there is nothing more.
  bool BeginNulls();
  uint64_t limit() const { return sorts_ || first_.has_value() ? 0 : options_.limit; }
  uint64_t wanted_at_once() const {
    return options_.limit > 0 ? options_.limit : options_.first_rows;
  }
  bool IsShown(uint32_t column) const;   // the caller wants its value
  bool IsWanted(uint32_t column) const;  // by the caller, or for the order
  Row ShownOf(Row row) const;            // with NULL where the caller wants no value
  void Exclude();
  void EnqueueAll();
  Status Advance();
  Status CheckTime(Time now) const;
  Time NextLook() const;
  void RefreshMap();
  Status TakeMap(const Result<TableCache::Regions>& regions);
  void Send(Time now);
  // Puts an idle sub-range where it waits for what it needs, cut where regions end.
  void Place(SubRangeAt sub_range, Time now);
  void PlaceWithin(SubRangeAt sub_range, const RegionInfo* region, Time now);
  std::vector<Request> MakeRequests();
  void MakeNeededDue();
  uint64_t RowsOfRound(uint64_t rows) const;
  bool KnowsOrder(const std::string& server) const;
  static void RestartWithoutOrder(SubRangeAt sub_range);
  bool RefusesOrder(const Request& request, const Status& status);
  Request MakeRequest(DueSubRanges::Server* server);
  void SendOne(Request request, Time now, bool alone);
  Status TakeReply(const Request& request, Result<pb::SearchReply> reply);
  void GiveUpLate(Time now);
  void Failed(SubRangeAt sub_range, const Status& status);
  bool Take(const std::string& server, const Part& part, pb::RangeResult* result);
  bool ReadTotals(const pb::FoundRow& found, RowGroup* group);
  std::optional<RowGroup> TakeRow();
  // Its rows are given out, or it had none.
  void Emptied(SubRangeAt sub_range);
  void Erase(SubRangeAt sub_range);
  uint64_t RequestLimit() const;
  uint64_t Missing() const;  // rows that the next replies should have; 0 = no limit
  void Conclude();           // walks over all regions

  const std::shared_ptr<QueryContext> context_;
  const SchemaPtr schema_;
  const SearchOptions options_;
  const TraceContext trace_ = CurrentTrace();
  const KeyRanges only_;
  bool grouping_ = false;  // rows may come as groups
  Plan plan_;
  Time deadline_{};
  bool begun_ = false;
  std::optional<Status> ended_;  // ok: the end
  // In key order, disjoint; those that are done and have no rows are taken off.
  std::list<SubRange> sub_ranges_;
  // Each idle sub-range that the map is not asked about is in one of these, some of them to be cut.
  std::vector<SubRangeAt> idle_;  // to be placed
  std::vector<SubRangeAt> stale_;
  std::multimap<Time, SubRangeAt> waiting_;  // for the moment when they may be asked again
  DueSubRanges due_;
  std::optional<OrderedMerge> merge_;       // in an order of an index or the key
  std::set<std::string> refused_order_;     // servers of an earlier version
  uint64_t rows_of_range_ = 0;              // that each sub-range is asked for, in an order
  uint64_t fruitless_rounds_ = 0;           // since a row was given
  uint64_t doublings_ = 0;                  // of the present round, for that
  bool nulls_follow_ = false;               // rows with NULL are still to come
  bool sorts_ = false;                      // no index gives the order: all rows are sorted here
  std::optional<std::vector<Row>> sorted_;  // the next one last
  std::optional<FirstRows> first_;          // rows are found as entries and read afterwards
  // With rows; not in key order, where the first sub-range alone matters.
  std::deque<SubRangeAt> ready_;
  TableCache::Regions regions_;
  // To requests, by their numbers, and, with number 0, to the question for a fresh map.
  Answers<std::variant<Result<pb::SearchReply>, Result<TableCache::Regions>>> answers_;
  std::map<size_t, Request> requests_;  // under way; later ones have later deadlines
  size_t next_request_ = 1;
  bool map_asked_ = false;
  uint64_t fetched_ = 0;  // rows in sub-ranges or given
  uint64_t given_ = 0;
  Status last_failure_;
  SearchAccount account_;
};

}  // namespace tamis
