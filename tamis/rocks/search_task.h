// SearchTask: one search request on its way through the regions of a server. Each region is a step
// of the server's executor, unless steps are inline. The answer is complete, or ends with a page,
// the limit, or the deadline; it says of each range how far it was searched.
//
// A range whose region is not open here, or cannot be searched, has an error in the answer.
// Threads: it is started once, and its steps run one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "tamis/base/status.h"
#include "tamis/cluster/region_server.h"
#include "tamis/rocks/open_regions.h"
#include "tamis/rocks/searcher.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

// Searches and regions that a server has searched since its start.
struct SearchCounts {
  std::atomic<uint64_t> searches = 0;
  std::atomic<uint64_t> regions = 0;
};

class SearchTask : public std::enable_shared_from_this<SearchTask> {
 public:
  SearchTask(std::shared_ptr<const ServerContext> context, std::shared_ptr<OpenRegions> regions,
             std::shared_ptr<SearchCounts> counts, const pb::SearchRequest& request,
             Callback<pb::SearchReply> done);

  void Start();

 private:
  void Next();
  pb::RangeResult SearchRange(const pb::SearchRange& range, uint64_t max_rows);

  const std::shared_ptr<const ServerContext> context_;
  const std::shared_ptr<OpenRegions> regions_;
  const std::shared_ptr<SearchCounts> counts_;
  const pb::SearchRequest request_;
  const Callback<pb::SearchReply> done_;
  const Time deadline_;  // then it is answered, with what is done by then
  // By the version of the schema that a region follows.
  std::map<uint64_t, Result<std::unique_ptr<Searcher>>> searchers_;
  pb::SearchReply reply_;
  int next_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace tamis
