// RequestWriter: writes the messages by which a search asks a server for rows of a plan.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <vector>

#include "tamis/base/trace_context.h"
#include "tamis/query/plan.h"
#include "tamis/query/search_options.h"
#include "tamis/query/search_requests.h"
#include "tamis/table/schema.h"

namespace tamis {

class RequestWriter {
 public:
  // The options outlive it. Requests belong to the trace of the thread that makes it.
  RequestWriter(SchemaPtr schema, const SearchOptions& options)
      : schema_(std::move(schema)), options_(options) {}

  // The next requests are those of this plan, which outlives them, for these columns (positions).
  void Begin(const Plan& plan, std::vector<uint32_t> columns);

  struct Terms {
    bool in_order = false;  // rows come in the order of the plan
    bool groups = false;    // rows may come as groups
    uint64_t limit = 0;     // rows of each sub-range; 0: all may come
    Time sent{};
    Duration timeout{};
  };
  // REQUIRES: the region of each sub-range is set.
  ServerRequest Write(DueSubRanges::Server* server, const std::vector<SubRangeAt>& sub_ranges,
                      const Terms& terms) const;

 private:
  const SchemaPtr schema_;
  const SearchOptions& options_;
  const TraceContext trace_ = CurrentTrace();
  const Plan* plan_ = nullptr;
  std::vector<uint32_t> columns_;
};

}  // namespace tamis
