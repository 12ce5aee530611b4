// SearchRequests: the requests of one search that are under way, and the answers to them.
//
// Each request has a deadline, and counts as a load of its server while it is under way. A request
// that was taken as late is over: its answer is dropped when it comes. The question for a fresh map
// of regions is asked here, too, since the search waits for both at once.
//
// Threads: exclusive access; answers may arrive on any thread. Next() blocks, and must not be
// called from a task of a ThreadExecutor.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/query/due_sub_ranges.h"
#include "tamis/query/query_context.h"
#include "tamis/query/sub_range.h"
#include "tamis/query/table_cache.h"
#include "tamis/table/schema.h"

namespace tamis {

// A sub-range on its way to the region that holds it.
struct AskedSubRange {
  SubRangeAt sub_range;
  uint64_t region_id = 0;
  std::string region_start;
};

struct ServerRequest {
  std::string server;
  DueSubRanges::Server* due = nullptr;
  std::shared_ptr<pb::SearchRequest> message;
  std::vector<AskedSubRange> parts;  // one for each of message->ranges
  Time sent{};
  Time deadline{};
};

class SearchRequests {
 public:
  using Regions = Result<TableCache::Regions>;
  struct Reply {
    ServerRequest request;
    Result<pb::SearchReply> reply;
  };

  explicit SearchRequests(std::shared_ptr<QueryContext> context)
      : context_(std::move(context)), answers_(context_->executor) {}

  // Sends a request, whose deadline must not be before those of earlier ones. `here`: by this
  // thread, which may carry it out; else by a task of the executor.
  void Send(ServerRequest request, bool here);
  // Asks for the regions of these keys, or of all keys if there are none. REQUIRES:
  // !is_map_asked().
  void AskMap(const TableSchema& schema, const std::vector<KeyRange>& stale);

  // The next answer. nullopt: the wait is over, or an answer came too late.
  std::optional<std::variant<Reply, Regions>> Next(const Wait& wait);
  // A request whose deadline is over; it is not under way any more. nullopt: there is none.
  std::optional<ServerRequest> TakeLate(Time now);

  bool is_map_asked() const { return map_asked_; }
  bool empty() const { return under_way_.empty(); }
  size_t size() const { return under_way_.size(); }
  Time NextDeadline() const;  // Time::max(): none is under way
  std::vector<std::string> SilentServers() const;

 private:
  struct UnderWay {
    ServerRequest request;
    std::unique_ptr<ServerLoads::Request> load;
  };

  const std::shared_ptr<QueryContext> context_;
  // To requests, by their numbers, and, with number 0, to the question for a fresh map.
  Answers<std::variant<Result<pb::SearchReply>, Regions>> answers_;
  std::map<size_t, UnderWay> under_way_;  // later ones have later deadlines
  size_t next_number_ = 1;
  bool map_asked_ = false;
};

}  // namespace tamis
