// Search: one search on its way: what is still to be covered, the pages that have come, the proof
// that nothing was left out.
//
// The keys that can match are cut into pieces. A piece is done when a region server has searched it
// to its end, or when the filters prove, at or after the start of the search, that it holds no
// match. What was not searched (the region moved, was split, its server died) is asked again, by a
// map that is fresh there.
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
#include <variant>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/query/explain.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/search_options.h"
#include "tamis/table/row.h"

namespace tamis {

class Search {
 public:
  Search(std::shared_ptr<QueryContext> context, SchemaPtr schema, SearchOptions options);

  Result<std::optional<Row>> Next();
  // Of a search that was left early: what it did so far.
  const Explain& explain() {
    Conclude();
    return explain_;
  }

 private:
  struct Piece {
    KeyRange range;
    std::string resume;
    std::deque<Row> rows;
    bool done = false;
    bool asked = false;  // it is on its way to a server
    // The map was wrong there: it is not asked before the map is fresh.
    enum class Map { kGood, kStale, kAsked } map = Map::kGood;
    Time not_before{};  // when it may be asked again
    BackOff back_off;

    bool IsIdle() const { return !done && !asked && rows.empty(); }
  };
  // A piece on its way to the region that holds it.
  struct Part {
    std::list<Piece>::iterator piece;
    uint64_t region_id = 0;
    std::string region_start;
  };
  struct Request {
    std::string server;
    std::shared_ptr<pb::SearchRequest> request;
    std::vector<Part> parts;  // as request->ranges
    Time sent{};
    Time deadline{};
    std::shared_ptr<ServerLoads::Request> load;
  };
  Status Begin();
  void Exclude();
  Status Advance();
  Status CheckTime(Time now) const;
  Time NextLook(Time now) const;
  void RefreshMap();
  Status TakeMap(const Result<TableCache::Regions>& regions);
  void Send(Time now);
  std::vector<Request> MakeRequests(Time now);
  void SendOne(Request request, Time now, bool alone);
  // Splits the pieces that are to be asked at region boundaries; what is before the first region
  // that is known stays as it is.
  void Align(const std::vector<RegionInfo>& regions);
  Status TakeReply(const Request& request, Result<pb::SearchReply> reply);
  void GiveUpLate(Time now);
  void Failed(Piece* piece, const Status& status);
  bool Take(const std::string& server, const Part& part, pb::RangeResult* result);
  std::optional<Row> TakeRow();
  bool IsDone() const;
  uint64_t Missing() const;  // rows that the next replies should have; 0 = no limit
  void Conclude();           // walks over all regions

  const std::shared_ptr<QueryContext> context_;
  const SchemaPtr schema_;
  const SearchOptions options_;
  Plan plan_;
  Time deadline_{};
  bool begun_ = false;
  std::optional<Status> ended_;  // ok: the end
  std::list<Piece> pieces_;      // in key order, disjoint
  TableCache::Regions regions_;
  // To requests, by their numbers, and, with number 0, to the question for a fresh map.
  Answers<std::variant<Result<pb::SearchReply>, Result<TableCache::Regions>>> answers_;
  std::map<size_t, Request> requests_;  // under way
  size_t next_request_ = 1;
  bool map_asked_ = false;
  uint64_t fetched_ = 0;  // rows in pieces or given
  uint64_t given_ = 0;
  Status last_failure_;
  Explain explain_;
  std::map<std::string, uint64_t> rows_of_region_;  // by start key, of regions asked
  KeyRanges excluded_;                              // by filters and never asked, for explain
  std::set<std::string> servers_asked_;
  std::set<uint64_t> scanned_;
  std::map<uint32_t, pb::IndexUse> uses_;  // by index
};

}  // namespace tamis
