#include "tamis/query/fan_out.h"

#include <algorithm>
#include <utility>

#include "tamis/cluster/error.h"
#include "tamis/query/result_rows.h"

namespace tamis {

FanOut::FanOut(std::shared_ptr<QueryContext> context, SchemaPtr schema,
               const SearchOptions& options, SearchAccount* account)
    : context_(std::move(context)),
      schema_(std::move(schema)),
      options_(options),
      account_(*account),
      coverage_(context_->executor, {.requests_in_flight = context_->options.requests_in_flight,
                                     .drop_failed = context_->options.faults.no_coverage_check}),
      rows_(context_, schema_, options_, &coverage_),
      due_requests_(context_, schema_, options_, &coverage_),
      requests_(context_) {}

void FanOut::Begin(const Plan& plan, Time deadline) {
  plan_ = &plan;
  deadline_ = deadline;
  rows_.Begin(plan);
  due_requests_.Begin(plan);
  coverage_.Begin(plan.keys, rows_.merge());
  if (regions_ == nullptr) regions_ = context_->tables->KnownRegions(schema_->id);
  if (regions_ != nullptr) Exclude();  // else once they are known
  coverage_.EnqueueAll();
}

bool FanOut::MayAskSeveral() const {
  return regions_ == nullptr || coverage_.IsInSeveral(*regions_);
}

void FanOut::SetWanted(const Wanted& wanted) {
  rows_.SetLimit(wanted.limit);
  due_requests_.SetWanted(wanted.columns, wanted.at_once, wanted.groups);
}

// Takes off what the filters exclude as of now. REQUIRES: EnqueueAll follows.
void FanOut::Exclude() {
  const OrderedMerge* merge = rows_.merge();
  const bool by_order = merge != nullptr && !merge->without_entries().empty();
  if (plan_->routing.kind == RoutingTerm::Kind::kAll && !by_order) return;
  const Time before = context_->executor->Now();
  GlobalIndex::Route route;
  if (plan_->routing.kind != RoutingTerm::Kind::kAll) {
    route = context_->global->Find(schema_->id, plan_->keys, plan_->routing, before);
  }
  if (by_order) route.excluded.Add(merge->without_entries());
  account_.NoteExcluded(coverage_.Exclude(route.excluded));
  account_.explain.routing_time += context_->executor->Now() - before;
}

// ---- Rows

Result<std::optional<RowGroup>> FanOut::Next() {
  for (;;) {
    if (auto row = rows_.Next()) {
      due_requests_.NoteRowsGiven(row->count);
      return row;
    }
    if (rows_.merge() != nullptr && !rows_.merge()->status().ok()) return rows_.merge()->status();
    if (regions_ != nullptr && coverage_.empty()) return std::optional<RowGroup>();
    TAMIS_RETURN_IF_ERROR(Advance());
  }
}

// ---- Time

Status FanOut::CheckTime(Time now) const {
  if (options_.cancelled != nullptr && options_.cancelled->load()) return Cancelled("cancelled");
  if (now < deadline_) return Status::Ok();
  std::string message = "the time is over";
  if (regions_ == nullptr || requests_.is_map_asked()) {
    message += " while the regions were asked for";
  }
  const char* before = "; not answered by ";
  for (const std::string& server : requests_.SilentServers()) {
    message += std::exchange(before, ", ") + server;
  }
  const Status& failure = coverage_.last_failure();
  if (!failure.ok()) message += "; the last failure: " + failure.message();
  return DeadlineExceeded(message);
}

// Sends the requests that are due and takes in one answer, or returns at NextLook().
Status FanOut::Advance() {
  // One instant for all of it: what is not due when it is sent must be due when it is waited for.
  const Time now = context_->executor->Now();
  TAMIS_RETURN_IF_ERROR(CheckTime(now));
  GiveUpLate(now);
  Send(now);
  RefreshMap();  // last: sending finds keys that have no server
  auto answer = requests_.Next({.deadline = NextLook(), .cancelled = options_.cancelled});
  const Time answered = context_->executor->Now();
  account_.explain.server_time += answered - now;  // a single request is carried out by this thread
  if (!answer.has_value()) return Status::Ok();
  if (const auto* map = std::get_if<SearchRequests::Regions>(&*answer)) return TakeMap(*map);
  auto& [request, reply] = std::get<SearchRequests::Reply>(*answer);
  coverage_.due().End(request.due);
  Status status = TakeReply(request, std::move(reply));
  account_.explain.merge_time += context_->executor->Now() - answered;
  return status;
}

// The next time at which there is something to do without an answer.
Time FanOut::NextLook() const {
  return std::min({deadline_, requests_.NextDeadline(), coverage_.NextPauseEnd()});
}

void FanOut::GiveUpLate(Time now) {
  while (const auto request = requests_.TakeLate(now)) {
    coverage_.due().End(request->due);
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - request->sent);
    const Status late =
        DeadlineExceeded("region server " + request->server + " did not answer within " +
                         std::to_string(waited.count()) + " ms");
    for (const AskedSubRange& part : request->parts) coverage_.Fail(part.sub_range, late);
  }
}

// ---- The map of regions

void FanOut::RefreshMap() {
  if (requests_.is_map_asked()) return;
  std::vector<KeyRange> stale = coverage_.TakeStale();
  if (stale.empty() && regions_ != nullptr) return;
  if (regions_ == nullptr) stale.clear();
  requests_.AskMap(*schema_, stale);
}

Status FanOut::TakeMap(const SearchRequests::Regions& regions) {
  coverage_.MapCame(regions.status());
  if (regions.ok()) {
    regions_ = *regions;
    Exclude();
  } else if (!IsTransient(regions.status().code())) {
    return regions.status();
  }
  coverage_.EnqueueAll();
  return Status::Ok();
}

// ---- Requests

void FanOut::Send(Time now) {
  if (regions_ == nullptr) return;
  coverage_.PlaceIdle(*regions_, now);
  auto list = due_requests_.Make(rows_.merge(), requests_.size(), now, deadline_);
  // Several servers work at the same time.
  const bool alone = list.size() == 1 && requests_.empty();
  for (ServerRequest& request : list) {
    ++account_.explain.requests;
    requests_.Send(std::move(request), alone);
  }
}

// ---- Replies

Status FanOut::TakeReply(const ServerRequest& request, Result<pb::SearchReply> reply) {
  if (reply.ok() && reply->results_size() == 0) {
    reply = Unavailable("region server " + request.server + " answered nothing");
  }
  if (!reply.ok()) {
    const bool refused = due_requests_.NoteRefusal(request, reply.status());
    if (!refused && !IsTransient(reply.status().code())) return reply.status();
    for (const AskedSubRange& part : request.parts) coverage_.Fail(part.sub_range, reply.status());
    return Status::Ok();
  }
  // Results stand in the order of the ranges; those at the end may be missing.
  for (size_t i = 0; i < request.parts.size(); ++i) {
    const AskedSubRange& part = request.parts[i];
    if (static_cast<int>(i) >= reply->results_size()) {
      coverage_.Return(part.sub_range);
      continue;
    }
    part.sub_range->asked = false;
    const pb::RangeResult& result = reply->results(static_cast<int>(i));
    if (result.has_error()) {
      Status status = FailureOf(result.error());
      if (!due_requests_.NoteRefusal(request, status) && !IsTransient(status.code())) return status;
      coverage_.Fail(part.sub_range, status);
    } else if (!Take(request.server, part, result)) {
      return DataLoss("region server " + request.server + " sent rows that do not fit the table");
    }
  }
  return Status::Ok();
}

// Takes in what a region says of its part. False: the rows do not fit the table.
bool FanOut::Take(const std::string& server, const AskedSubRange& part,
                  const pb::RangeResult& result) {
  SubRange& sub_range = *part.sub_range;
  // A region is one, however many pages it answers with.
  account_.NoteCounters(part.region_id, result.counters(), sub_range.resume.empty());
  if (result.region_id() != part.region_id || result.start() != sub_range.range.start) {
    coverage_.Fail(part.sub_range,
                   Unavailable("region server " + server + " answered for other keys"));
    return true;
  }
  auto read = ResultRows::Read(*schema_, options_.totals, result, due_requests_.in_order());
  if (!read.has_value()) return false;
  due_requests_.NoteRowsFetched(read->rows_found);
  account_.NoteRows(server, part.region_start, *read);
  // The part of the sub-range that the region did not hold is asked again.
  const std::string& end = sub_range.range.end;
  const bool shorter = !result.end().empty() && (end.empty() || result.end() < end);
  if (shorter && !context_->options.faults.no_coverage_check) {
    coverage_.CutAt(part.sub_range, result.end());
  }
  sub_range.backoff.Reset();
  sub_range.in_order = result.in_order();
  // A page of groups is taken together with the position after it, or not at all: each of its rows
  // is then counted once, however often the page is asked for.
  const bool first_of_parts =
      result.groups() && !result.resume().empty() && account_.NoteInParts(part.region_id);
  if (!first_of_parts || !context_->options.faults.page_added_twice) {
    sub_range.resume = result.resume();
  }
  sub_range.done = result.resume().empty();
  rows_.Add(part.sub_range, *std::move(read), result.in_order());
  return true;
}

}  // namespace tamis
