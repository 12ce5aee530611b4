#include "tamis/query/due_requests.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tamis {
namespace {

// Requests under way at a time for a search with a LIMIT, which chooses the servers itself.
constexpr size_t kRequestsForLimit = 8;

}  // namespace

void DueRequests::Begin(const Plan& plan) {
  plan_ = &plan;
  rounds_.reset();
  if (plan.order.has_value()) {
    rounds_.emplace(*plan.order, options_.limit > 0 ? options_.limit : options_.first_rows);
  }
}

void DueRequests::SetWanted(std::vector<uint32_t> columns, uint64_t at_once, bool groups) {
  at_once_ = at_once;
  grouping_ = groups;
  writer_.Begin(*plan_, std::move(columns));
}

uint64_t DueRequests::Missing() const { return at_once_ - std::min(fetched_, at_once_); }

uint64_t DueRequests::RequestLimit() const {
  constexpr uint64_t kSoon = 1000;
  const bool soon = grouping_ && options_.groups == SearchOptions::Groups::kSoon && fetched_ == 0;
  return Missing() == 0 && soon ? kSoon : Missing();
}

std::vector<ServerRequest> DueRequests::Make(const OrderedMerge* merge, size_t under_way, Time now,
                                             Time deadline) {
  size_t most = std::numeric_limits<size_t>::max();
  if (rounds_.has_value()) {
    const bool is_next_round = under_way == 0;
    const std::vector<SubRangeAt> needed = rounds_->Needed(*merge, given_, is_next_round);
    if (coverage_.MakeDue(needed) && is_next_round) rounds_->RoundBegins();
  } else if (Missing() > 0) {
    most = kRequestsForLimit - std::min(kRequestsForLimit, under_way);
  }
  // If not all are needed: in key order the first ones, else servers with fewer requests.
  const bool by_load = Missing() > 0 && !options_.key_order && !rounds_.has_value();
  DueSubRanges& due = coverage_.due();
  std::vector<ServerRequest> list;
  while (list.size() < most) {
    DueSubRanges::Server* server = by_load ? due.LeastLoaded(context_->loads) : due.First();
    if (server == nullptr) break;
    list.push_back(MakeOne(server, now, deadline));
    // In key order the later sub-ranges are asked once; then only the one that is due.
    if (options_.key_order && !list.back().parts.back().sub_range->resume.empty()) break;
  }
  return list;
}

ServerRequest DueRequests::MakeOne(DueSubRanges::Server* server, Time now, Time deadline) {
  const auto sub_ranges =
      coverage_.due().Begin(server, context_->options.request_ranges, options_.key_order);
  const bool knows_order = !rounds_.has_value() || rounds_->IsKnownTo(server->name);
  RequestWriter::Terms terms{
      .in_order = rounds_.has_value() && knows_order,
      .groups = grouping_,
      .sent = now,
      .timeout = std::min(context_->options.request_timeout, deadline - now)};
  if (knows_order) {
    terms.limit = rounds_.has_value() ? rounds_->rows_of_sub_range() : RequestLimit();
  } else {
    for (const SubRangeAt sub_range : sub_ranges) OrderedRounds::RestartWithoutOrder(sub_range);
  }
  for (const SubRangeAt sub_range : sub_ranges) sub_range->asked = true;
  return writer_.Write(server, sub_ranges, terms);
}

void DueRequests::NoteRowsGiven(uint64_t rows) {
  given_ += rows;
  if (rounds_.has_value()) rounds_->RowGiven();
}

bool DueRequests::NoteRefusal(const ServerRequest& request, const Status& status) {
  return status.code() == StatusCode::kInvalidArgument && rounds_.has_value() &&
         request.message->has_order() && rounds_->NoteRefusal(request.server);
}

}  // namespace tamis
