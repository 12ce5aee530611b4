// Search: one search on its way: what is still to be covered, the pages that have come, the proof
// that nothing was left out.
//
// The keys that can match are cut into pieces. A piece is done when a region server has searched it
// to its end, or when the filters prove, at or after the start of the search, that it holds no
// match. What was not searched (the region moved, was split, its server died) is asked again, by a
// fresh map.
//
// Threads: exclusive access.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tamis/query/engine_context.h"
#include "tamis/query/plan.h"

namespace tamis {

class Search {
 public:
  Search(std::shared_ptr<EngineContext> context, SchemaPtr schema, SearchOptions options);

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
  };
  // A piece, or the part of it that one region holds, on its way to a server.
  struct Part {
    std::list<Piece>::iterator piece;
    uint64_t region_id = 0;
    std::string region_start;
  };
  struct Request {
    std::string server;
    pb::SearchRequest request;
    std::vector<Part> parts;  // as request.ranges
  };

  Status Begin();
  void Exclude();
  Status RefreshRegions();
  Status FetchRound();
  std::vector<Request> MakeRequests();
  // Splits the piece at region boundaries; what is before the first region that is known stays as
  // it is.
  void Align(const std::vector<RegionInfo>& regions);
  bool Take(const std::string& server, const Part& part, pb::RangeResult* result);
  std::optional<Row> TakeRow();
  bool IsDone() const;
  uint64_t Missing() const;  // rows that the next replies should have; 0 = no limit
  void Conclude();           // walks over all regions

  const std::shared_ptr<EngineContext> context_;
  const SchemaPtr schema_;
  const SearchOptions options_;
  Plan plan_;
  Time deadline_{};
  bool begun_ = false;
  std::optional<Status> ended_;  // ok: the end
  std::list<Piece> pieces_;      // in key order, disjoint
  TableCache::Regions regions_;
  uint64_t fetched_ = 0;  // rows in pieces or given
  uint64_t given_ = 0;
  bool map_is_old_ = false;
  Status last_failure_;
  Explain explain_;
  std::map<std::string, uint64_t> rows_of_region_;  // by start key, of regions asked
  KeyRanges excluded_;                              // by filters, for explain
  std::set<std::string> servers_asked_;
  std::set<uint64_t> scanned_;
};

}  // namespace tamis
