#include "tamis/query/search.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/cluster/error.h"
#include "tamis/cluster/region_server.h"
#include "tamis/cluster/totals_message.h"
#include "tamis/cluster/trace.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

// Requests under way at a time for a search with a LIMIT, which chooses the servers itself.
constexpr size_t kRequestsForLimit = 8;

}  // namespace

Search::Search(std::shared_ptr<QueryContext> context, SchemaPtr schema, SearchOptions options,
               KeyRanges only)
    : context_(std::move(context)),
      schema_(std::move(schema)),
      options_(std::move(options)),
      only_(std::move(only)),
      due_(context_->options.requests_in_flight),
      answers_(context_->executor) {
  grouping_ =
      options_.groups != SearchOptions::Groups::kNone && !options_.key_order &&
      options_.order.empty() && options_.columns.has_value() &&
      std::ranges::none_of(*options_.columns, [&](uint32_t c) { return schema_->IsKey(c); });
}

Result<std::optional<RowGroup>> Search::Next() {
  auto row = WithoutExceptions([this] { return NextRow(); });
  if (!row.ok() && !ended_.has_value()) ended_ = row.status();
  return row;
}

Result<std::optional<RowGroup>> Search::NextRow() {
  if (!begun_) {
    begun_ = true;
    if (Status status = Begin(); !status.ok()) ended_ = status;
  }
  if (first_.has_value()) return NextFirst();
  return sorts_ ? NextSorted() : NextFound();
}

Result<std::optional<RowGroup>> Search::NextSorted() {
  if (!sorted_.has_value()) {
    std::vector<Row> rows;
    for (;;) {
      TAMIS_ASSIGN_OR_RETURN(auto row, NextFound());
      if (!row.has_value()) break;
      rows.push_back(std::move(row->row));
    }
    std::ranges::stable_sort(
        rows, [&](const Row& a, const Row& b) { return ComesBefore(options_.order, a, b); });
    if (options_.limit > 0 && rows.size() > options_.limit) rows.resize(options_.limit);
    std::ranges::reverse(rows);
    given_ = rows.size();
    sorted_ = std::move(rows);
  }
  if (sorted_->empty()) return std::optional<RowGroup>();
  Row row = std::move(sorted_->back());
  sorted_->pop_back();
  return std::optional(RowGroup{.row = ShownOf(std::move(row))});
}

Result<std::optional<RowGroup>> Search::NextFirst() {
  while (first_->empty()) {
    if (options_.limit > 0 && first_->given() >= options_.limit) return std::optional<RowGroup>();
    std::vector<Row> entries;
    for (uint64_t missing = first_->Missing(wanted_at_once()); missing > 0; --missing) {
      TAMIS_ASSIGN_OR_RETURN(auto entry, NextFound());
      if (!entry.has_value()) break;
      entries.push_back(std::move(entry->row));
    }
    if (entries.empty()) return std::optional<RowGroup>();
    TAMIS_RETURN_IF_ERROR(ReadRowsOf(entries));
  }
  return std::optional(RowGroup{.row = ShownOf(first_->Take())});
}

Status Search::ReadRowsOf(const std::vector<Row>& entries) {
  SearchOptions options{.predicate = options_.predicate,
                        .columns = options_.columns,
                        .use_filters = false,
                        .use_indexes = false,
                        .timeout = deadline_ - context_->executor->Now(),
                        .cancelled = options_.cancelled};
  if (options.columns.has_value()) {
    for (const OrderTerm& term : options_.order) options.columns->push_back(term.column);
  }
  Search search(context_, schema_, std::move(options), first_->KeysOf(entries));
  std::vector<Row> rows;
  for (;;) {
    TAMIS_ASSIGN_OR_RETURN(auto row, search.Next());
    if (!row.has_value()) break;
    rows.push_back(std::move(row->row));
  }
  account_.AddPart(search.account_);
  first_->Add(entries, std::move(rows), [this](const std::string& key) {
    if (merge_.has_value()) merge_->Forget(key);
  });
  return Status::Ok();
}

Result<std::optional<RowGroup>> Search::NextFound() {
  while (!ended_.has_value()) {
    if (limit() > 0 && given_ >= limit()) {
      ended_ = Status::Ok();
      break;
    }
    if (auto row = TakeRow()) {
      if (limit() > 0) row->count = std::min(row->count, limit() - given_);
      given_ += row->count;
      return row;
    }
    if (merge_.has_value() && !merge_->status().ok()) {
      ended_ = merge_->status().WithContext("cannot search table \"" + schema_->name + "\"");
    } else if (regions_ != nullptr && sub_ranges_.empty()) {
      if (!BeginNulls()) ended_ = Status::Ok();
    } else if (Status status = Advance(); !status.ok()) {
      ended_ = status.WithContext("cannot search table \"" + schema_->name + "\"");
    }
  }
  if (!ended_->ok()) return *ended_;
  return std::optional<RowGroup>();
}

Status Search::Begin() {
  TAMIS_RETURN_IF_ERROR(options_.predicate.Validate(*schema_));
  deadline_ = context_->executor->Now() + options_.timeout;
  account_.explain.table = schema_->name;
  account_.explain.predicate = options_.predicate.ToString(*schema_);
  MakePlanFor(options_.predicate, options_.order);
  account_.explain.index = plan_.index;
  account_.explain.terms = plan_.terms;
  account_.explain.reason = plan_.reason;
  sorts_ = !options_.order.empty() && !plan_.order.has_value();
  if (sorts_)
    account_.explain.reason += "; no index gives the order, so that all of them are sorted here";
  if (!options_.remark.empty()) account_.explain.reason += "; " + options_.remark;
  nulls_follow_ = plan_.order.has_value() && plan_.order->nulls_follow;
  regions_ = context_->tables->KnownRegions(schema_->id);
  if (regions_ != nullptr) Exclude();  // else once they are known
  EnqueueAll();
  if (plan_.order.has_value() && plan_.order->index != nullptr &&
      FirstRows::Applies(*schema_, *plan_.order, options_) && MayAskSeveralRegions()) {
    first_.emplace(schema_, *plan_.order->index, options_.order);
    account_.explain.reason += FirstRows::kReason;
  }
  if (merge_.has_value()) merge_->SetLimit(limit());
  return Status::Ok();
}

// One region gives no row too many.
bool Search::MayAskSeveralRegions() const {
  if (regions_ == nullptr || sub_ranges_.size() > 1) return true;
  if (sub_ranges_.empty()) return false;
  const KeyRange& keys = sub_ranges_.front().range;
  const auto next = std::ranges::upper_bound(*regions_, keys.start, {}, &RegionInfo::start);
  return next != regions_->end() && (keys.end.empty() || next->start < keys.end);
}

void Search::MakePlanFor(const Predicate& predicate, const std::vector<OrderTerm>& order) {
  plan_ =
      MakePlan(*schema_, predicate,
               {.use_filters = options_.use_filters,
                .use_indexes = options_.use_indexes,
                .columns = options_.columns,
                .key_order = options_.key_order,
                .groups = grouping_ && options_.groups == SearchOptions::Groups::kWhole,
                .conditions_of_streams_only = context_->options.faults.conditions_of_streams_only,
                .order = order});
  merge_.reset();
  sub_ranges_.clear();
  plan_.keys = plan_.keys.Intersect(only_);
  for (const KeyRange& range : plan_.keys.ranges()) sub_ranges_.push_back({.range = range});
  if (plan_.order.has_value()) BeginOrder();
}

void Search::BeginOrder() {
  const IndexOrder& order = *plan_.order;
  merge_.emplace(schema_, OrderedMerge::Options{
                              .terms = options_.order,
                              .order = order,
                              .stream = order.index == nullptr ? pb::IndexStream()
                                                               : plan_.branches[0].streams(0),
                              .each_once = options_.limit > 0 || options_.first_rows > 0,
                              .stop_early = context_->options.faults.stop_before_bounds});
  if (options_.use_filters && order.index != nullptr) {
    GlobalIndex::Wanted wanted{.low = order.first_values.low, .high = order.first_values.high};
    if (!order.descending || order.ends_with_first()) wanted.cells = order.index->cell_map.get();
    merge_->SetBounds(context_->global->Bounds(schema_->id, plan_.keys, order.index->id,
                                               order.descending, context_->executor->Now(),
                                               wanted));
  }
  for (auto at = sub_ranges_.begin(); at != sub_ranges_.end(); ++at) merge_->Place(at);
}

bool Search::BeginNulls() {
  if (!std::exchange(nulls_follow_, false)) return false;
  const uint32_t column = options_.order[0].column;
  MakePlanFor(Predicate::And({options_.predicate, Predicate::IsNull(column)}), {});
  Exclude();
  EnqueueAll();
  return true;
}

bool Search::IsShown(uint32_t column) const {
  return !options_.columns.has_value() ||
         std::ranges::find(*options_.columns, column) != options_.columns->end();
}

bool Search::IsWanted(uint32_t column) const {
  if (first_.has_value() && !first_->IsInEntry(column)) return false;
  if (IsShown(column)) return true;
  const auto of_index = [&](const IndexSpec& index) {
    return std::ranges::find(index.columns, column) != index.columns.end();
  };
  const IndexSpec* index = plan_.order.has_value() ? plan_.order->index : nullptr;
  return (index != nullptr && of_index(*index)) ||
         std::ranges::find(options_.order, column, &OrderTerm::column) != options_.order.end();
}

Row Search::ShownOf(Row row) const {
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (!schema_->IsKey(i) && !IsShown(i)) row[i] = Value();
  }
  return row;
}

// Takes off what the filters exclude as of now. REQUIRES: EnqueueAll follows.
void Search::Exclude() {
  const bool by_order = merge_.has_value() && !merge_->without_entries().empty();
  if (plan_.routing.kind == RoutingTerm::Kind::kAll && !by_order) return;
  const Time before = context_->executor->Now();
  GlobalIndex::Route route;
  if (plan_.routing.kind != RoutingTerm::Kind::kAll) {
    route = context_->global->Find(schema_->id, plan_.keys, plan_.routing, before);
  }
  if (by_order) route.excluded.Add(merge_->without_entries());
  KeyRanges never_asked;
  // Sub-ranges that are asked stay where they are: their requests point to them.
  for (auto sub_range = sub_ranges_.begin(); sub_range != sub_ranges_.end();) {
    if (!sub_range->IsIdle()) {
      ++sub_range;
      continue;
    }
    KeyRanges left = KeyRanges::Of(sub_range->range);
    left.Subtract(route.excluded);
    // A region that has answered is one that was asked, whatever becomes of what is left of it.
    if (sub_range->resume.empty()) {
      const KeyRanges taken = route.excluded.Intersect(sub_range->range);
      for (const KeyRange& range : taken.ranges()) never_asked.Add(range);
    }
    for (const KeyRange& range : left.ranges()) {
      SubRange part = *sub_range;
      part.range = range;
      sub_range->collected.clear();  // rows are collected once, whatever part they are of
      const auto placed = sub_ranges_.insert(sub_range, std::move(part));
      if (merge_.has_value()) merge_->Place(placed);
    }
    Erase(sub_range++);
  }
  account_.NoteExcluded(never_asked);
  account_.explain.routing_time += context_->executor->Now() - before;
}

// Where sub-ranges wait depends on the map: they are placed anew.
void Search::EnqueueAll() {
  due_.Clear();
  waiting_.clear();
  stale_.clear();
  idle_.clear();
  for (auto sub_range = sub_ranges_.begin(); sub_range != sub_ranges_.end(); ++sub_range) {
    sub_range->region = nullptr;
    if (sub_range->IsIdle()) idle_.push_back(sub_range);
  }
}

void Search::Erase(SubRangeAt sub_range) {
  if (merge_.has_value()) merge_->Remove(sub_range);
  sub_ranges_.erase(sub_range);
}

std::optional<RowGroup> Search::TakeRow() {
  if (merge_.has_value()) {
    auto row = merge_->Next([this](SubRangeAt at) { Emptied(at); });
    if (!row.has_value()) return std::nullopt;
    fruitless_rounds_ = doublings_ = 0;
    return RowGroup{.row = first_.has_value() ? *std::move(row) : ShownOf(*std::move(row))};
  }
  if (options_.key_order ? sub_ranges_.empty() : ready_.empty()) return std::nullopt;
  const SubRangeAt sub_range = options_.key_order ? sub_ranges_.begin() : ready_.front();
  if (sub_range->rows.empty()) return std::nullopt;
  RowGroup row = std::move(sub_range->rows.back());
  sub_range->rows.pop_back();
  if (sub_range->rows.empty()) {
    if (!options_.key_order) ready_.pop_front();
    Emptied(sub_range);
  }
  return row;
}

void Search::Emptied(SubRangeAt sub_range) {
  if (sub_range->done) {
    Erase(sub_range);
  } else {
    idle_.push_back(sub_range);
  }
}

uint64_t Search::Missing() const {
  if (sorts_) return 0;
  const uint64_t wanted = wanted_at_once();
  return wanted - std::min(fetched_, wanted);
}

uint64_t Search::RequestLimit() const {
  constexpr uint64_t kSoon = 1000;
  const bool soon = grouping_ && options_.groups == SearchOptions::Groups::kSoon && fetched_ == 0;
  return Missing() == 0 && soon ? kSoon : Missing();
}

// ---- Asking

Status Search::CheckTime(Time now) const {
  if (options_.cancelled != nullptr && options_.cancelled->load()) return Cancelled("cancelled");
  if (now < deadline_) return Status::Ok();
  std::string message = "the time is over";
  if (regions_ == nullptr || map_asked_) message += " while the regions were asked for";
  std::string silent;
  for (const auto& [number, request] : requests_) {
    silent += (silent.empty() ? "; not answered by " : ", ") + request.server;
  }
  message += silent;
  if (!last_failure_.ok()) message += "; the last failure: " + last_failure_.message();
  return DeadlineExceeded(message);
}

// Sends the requests that are due and takes in one answer, or returns at NextLook().
Status Search::Advance() {
  // One instant for all of it: what is not due when it is sent must be due when it is waited for.
  const Time now = context_->executor->Now();
  TAMIS_RETURN_IF_ERROR(CheckTime(now));
  GiveUpLate(now);
  Send(now);
  RefreshMap();  // last: sending finds keys that have no server
  auto answer = answers_.Next({.deadline = NextLook(), .cancelled = options_.cancelled});
  const Time answered = context_->executor->Now();
  account_.explain.server_time += answered - now;  // a single request is carried out by this thread
  if (!answer.has_value()) return Status::Ok();
  if (answer->question == 0) return TakeMap(std::get<1>(answer->value));
  auto request = requests_.extract(answer->question);
  if (request.empty()) return Status::Ok();  // given up before
  due_.End(request.mapped().due);
  Status status = TakeReply(request.mapped(), std::get<0>(std::move(answer->value)));
  account_.explain.merge_time += context_->executor->Now() - answered;
  return status;
}

// The next time at which there is something to do without an answer.
Time Search::NextLook() const {
  Time next = deadline_;
  if (!requests_.empty()) next = std::min(next, requests_.begin()->second.deadline);
  if (!waiting_.empty()) next = std::min(next, waiting_.begin()->first);
  return next;
}

void Search::GiveUpLate(Time now) {
  while (!requests_.empty() && now >= requests_.begin()->second.deadline) {
    const Request request = std::move(requests_.extract(requests_.begin()).mapped());
    due_.End(request.due);
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - request.sent);
    const Status late =
        DeadlineExceeded("region server " + request.server + " did not answer within " +
                         std::to_string(waited.count()) + " ms");
    for (const Part& part : request.parts) Failed(part.sub_range, late);
  }
}

// The sub-range is asked again, later and later, and not before the map has been looked at there.
void Search::Failed(SubRangeAt sub_range, const Status& status) {
  last_failure_ = status;
  if (context_->options.faults.no_coverage_check) return Erase(sub_range);
  sub_range->region = nullptr;
  sub_range->asked = false;
  sub_range->map = SubRange::Map::kStale;
  sub_range->not_before = context_->executor->Now() + sub_range->backoff.Next();
  stale_.push_back(sub_range);
}

void Search::RefreshMap() {
  if (map_asked_) return;
  std::ranges::sort(stale_, {}, [](SubRangeAt at) { return std::string_view(at->range.start); });
  std::vector<KeyRange> stale;
  for (const SubRangeAt sub_range : std::exchange(stale_, {})) {
    sub_range->map = SubRange::Map::kAsked;
    stale.push_back(sub_range->range);
  }
  if (stale.empty() && regions_ != nullptr) return;
  if (regions_ == nullptr) stale.clear();
  map_asked_ = true;
  context_->tables->RefreshRegions(
      *schema_, stale,
      [to = answers_.To(0)](Result<TableCache::Regions> regions) { to(std::move(regions)); });
}

Status Search::TakeMap(const Result<TableCache::Regions>& regions) {
  map_asked_ = false;
  for (SubRange& sub_range : sub_ranges_) {
    if (sub_range.map == SubRange::Map::kAsked) {
      sub_range.map = regions.ok() ? SubRange::Map::kGood : SubRange::Map::kStale;
    }
  }
  if (regions.ok()) {
    regions_ = *regions;
    Exclude();
  } else {
    last_failure_ = regions.status();
    if (!IsTransient(regions.status().code())) return regions.status();
  }
  EnqueueAll();
  return Status::Ok();
}

void Search::Place(SubRangeAt sub_range, Time now) {
  const std::vector<RegionInfo>& regions = *regions_;
  auto next = std::ranges::upper_bound(regions, sub_range->range.start, {}, &RegionInfo::start);
  for (SubRangeAt tail;; sub_range = tail) {
    // The end of the region that holds its start, or of the gap where none is known.
    const bool known = next != regions.begin() && std::prev(next)->Contains(sub_range->range.start);
    const RegionInfo* region = known ? &*std::prev(next) : nullptr;
    const std::string end = known ? region->end : next == regions.end() ? "" : next->start;
    tail = sub_ranges_.end();
    if (!end.empty() && (sub_range->range.end.empty() || sub_range->range.end > end)) {
      tail = sub_ranges_.insert(std::next(sub_range), *sub_range);
      tail->range.start = end;
      tail->collected.clear();
      sub_range->range.end = end;
      if (merge_.has_value()) {
        merge_->Place(sub_range);  // its bound is that of fewer keys
        merge_->Place(tail);
      }
    }
    PlaceWithin(sub_range, region, now);
    if (tail == sub_ranges_.end()) return;
    while (next != regions.end() && next->start <= tail->range.start) ++next;
  }
}

void Search::PlaceWithin(SubRangeAt sub_range, const RegionInfo* region, Time now) {
  sub_range->region = nullptr;
  if (sub_range->map == SubRange::Map::kStale) {
    stale_.push_back(sub_range);
  } else if (sub_range->map == SubRange::Map::kAsked) {
    return;  // until TakeMap
  } else if (sub_range->not_before > now) {
    waiting_.emplace(sub_range->not_before, sub_range);
  } else if (region == nullptr || region->server.empty()) {
    Failed(sub_range, Unavailable("no region server has some of the keys now"));
  } else if (merge_.has_value()) {
    sub_range->region = region;  // due once its rows are needed
  } else {
    due_.Add(sub_range, *region);
  }
}

// In an order the next rows decide which servers are asked. Without a limit as many again are
// fetched as were given: most often the caller stops soon. Rounds of requests that brought no row
// to give make the next one larger.
void Search::MakeNeededDue() {
  constexpr uint64_t kMostDoublings = 12;
  constexpr uint64_t kLeastRows = 4;  // of a sub-range, in one reply
  due_.Clear();
  const uint64_t wanted = wanted_at_once();
  const uint64_t rows = wanted > given_ ? wanted - given_ : std::max<uint64_t>(1, given_);
  if (requests_.empty()) doublings_ = std::min(fruitless_rounds_, kMostDoublings);
  const std::vector<SubRangeAt> needed = merge_->Needed(RowsOfRound(rows) << doublings_);
  if (needed.empty()) return;
  const uint64_t share = 2 * ((rows + needed.size() - 1) / needed.size());
  rows_of_range_ = std::min(rows, std::max(kLeastRows, share));
  bool any = false;
  for (const SubRangeAt sub_range : needed) {
    if (!sub_range->IsIdle() || sub_range->region == nullptr) continue;
    due_.Add(sub_range, *sub_range->region);
    any = true;
  }
  if (any && requests_.empty()) ++fruitless_rounds_;
}

// How many rows the sub-ranges that are asked at once should have, if each has one. In reverse key
// order all rows of a sub-range come before those of the next: one is asked, and some more once
// many rows were wanted.
uint64_t Search::RowsOfRound(uint64_t rows) const {
  constexpr uint64_t kRowsOfSubRange = 1000;
  constexpr uint64_t kMostSubRanges = 8;
  if (plan_.order->index != nullptr) return rows;
  if (wanted_at_once() > 0) return 1;
  return std::clamp<uint64_t>(given_ / kRowsOfSubRange, 1, kMostSubRanges);
}

// For the sub-ranges that may be asked now, as many as may be under way.
std::vector<Search::Request> Search::MakeRequests() {
  size_t most = std::numeric_limits<size_t>::max();
  if (merge_.has_value()) {
    MakeNeededDue();
  } else if (Missing() > 0) {
    most = kRequestsForLimit - std::min(kRequestsForLimit, requests_.size());
  }
  // If not all are needed: in key order the first ones, else servers with fewer requests.
  const bool by_load = Missing() > 0 && !options_.key_order && !merge_.has_value();
  std::vector<Request> list;
  while (list.size() < most) {
    DueSubRanges::Server* server = by_load ? due_.LeastLoaded(context_->loads) : due_.First();
    if (server == nullptr) break;
    list.push_back(MakeRequest(server));
    // In key order the later sub-ranges are asked once; then only the one that is due.
    if (options_.key_order && !list.back().parts.back().sub_range->resume.empty()) break;
  }
  return list;
}

Search::Request Search::MakeRequest(DueSubRanges::Server* server) {
  Request request{.server = server->name,
                  .due = server,
                  .request = std::make_shared<pb::SearchRequest>(),
                  .parts = {},
                  .load = nullptr};
  for (const SubRangeAt sub_range :
       due_.Begin(server, context_->options.request_ranges, options_.key_order)) {
    if (!KnowsOrder(server->name)) RestartWithoutOrder(sub_range);
    pb::SearchRange* range = request.request->add_ranges();
    range->set_region_id(sub_range->region->id.number());
    range->set_epoch(sub_range->region->epoch);
    range->set_start(sub_range->range.start);
    range->set_end(sub_range->range.end);
    range->set_resume(sub_range->resume);
    request.parts.push_back({sub_range, sub_range->region->id.number(), sub_range->region->start});
  }
  return request;
}

// An earlier version refuses the order of the row key. One that does not know the order of an
// index gives all rows.
bool Search::KnowsOrder(const std::string& server) const {
  return !merge_.has_value() || !refused_order_.contains(server);
}

// All rows that are left of it are to be collected, from its start.
void Search::RestartWithoutOrder(SubRangeAt sub_range) {
  if (!std::exchange(sub_range->in_order, false)) return;
  sub_range->resume.clear();
  // Rows from the last one that came on are done.
  const std::string& done = sub_range->position;
  std::string& end = sub_range->range.end;
  if (!done.empty() && (end.empty() || done < end)) end = std::max(done, sub_range->range.start);
}

bool Search::RefusesOrder(const Request& request, const Status& status) {
  if (status.code() != StatusCode::kInvalidArgument || !plan_.order.has_value() ||
      plan_.order->index != nullptr || !request.request->has_order()) {
    return false;
  }
  refused_order_.insert(request.server);
  return true;
}

void Search::Send(Time now) {
  if (regions_ == nullptr) return;
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    idle_.push_back(waiting_.extract(waiting_.begin()).mapped());
  }
  for (const SubRangeAt sub_range : std::exchange(idle_, {})) Place(sub_range, now);
  std::vector<Request> list = MakeRequests();
  const bool alone = list.size() == 1 && requests_.empty();
  for (Request& request : list) SendOne(std::move(request), now, alone);
}

void Search::SendOne(Request request, Time now, bool alone) {
  request.sent = now;
  request.deadline =
      request.sent + std::min(context_->options.request_timeout, deadline_ - request.sent);
  request.request->set_table_id(schema_->id);
  request.request->set_schema_version(schema_->version);
  if (merge_.has_value() && KnowsOrder(request.server)) {
    const IndexSpec* index = plan_.order->index;
    request.request->mutable_order()->set_index_id(index == nullptr ? 0 : index->id);
    request.request->mutable_order()->set_descending(plan_.order->descending);
  }
  const uint64_t limit = merge_.has_value() ? rows_of_range_ : RequestLimit();
  request.request->set_limit(KnowsOrder(request.server) ? limit : 0);
  request.request->set_groups(grouping_);
  if (grouping_) {
    for (const uint32_t column : options_.totals) {
      request.request->add_totals(schema_->columns[column].id);
    }
  }
  request.request->set_timeout_ns(static_cast<uint64_t>((request.deadline - request.sent).count()));
  SetTrace(trace_, request.request.get());
  for (const pb::Branch& branch : plan_.branches) *request.request->add_branches() = branch;
  for (uint32_t i = 0; i < schema_->columns.size(); ++i) {
    if (IsWanted(i)) request.request->add_columns(schema_->columns[i].id);
  }
  for (const Part& part : request.parts) part.sub_range->asked = true;
  request.load = std::make_shared<ServerLoads::Request>(&context_->loads, request.server);
  ++account_.explain.requests;
  const size_t number = next_request_++;
  auto send = [context = context_, server = request.server, message = request.request,
               to = answers_.To(number)] {
    const Status sent = WithoutExceptions([&] {
      context->cluster->Server(server)->Search(
          *message, [to](Result<pb::SearchReply> reply) { to(std::move(reply)); });
      return Status::Ok();
    });
    if (!sent.ok()) to(Result<pb::SearchReply>(sent));  // it counts unless an answer came before
  };
  requests_.emplace(number, std::move(request));
  if (alone) {
    send();
  } else {
    context_->executor->Post(std::move(send));  // several servers work at the same time
  }
}

Status Search::TakeReply(const Request& request, Result<pb::SearchReply> reply) {
  if (reply.ok() && reply->results_size() == 0) {
    reply = Unavailable("region server " + request.server + " answered nothing");
  }
  if (!reply.ok()) {
    const bool refused = RefusesOrder(request, reply.status());
    if (!refused && !IsTransient(reply.status().code())) return reply.status();
    for (const Part& part : request.parts) Failed(part.sub_range, reply.status());
    return Status::Ok();
  }
  // Results stand in the order of the ranges; those at the end may be missing.
  for (size_t i = 0; i < request.parts.size(); ++i) {
    const Part& part = request.parts[i];
    part.sub_range->asked = false;
    if (static_cast<int>(i) >= reply->results_size()) {
      idle_.push_back(part.sub_range);
      continue;
    }
    pb::RangeResult* result = reply->mutable_results(static_cast<int>(i));
    if (result->has_error()) {
      Status status = FailureOf(result->error());
      if (!RefusesOrder(request, status) && !IsTransient(status.code())) return status;
      Failed(part.sub_range, status);
    } else if (!Take(request.server, part, result)) {
      return DataLoss("region server " + request.server + " sent rows that do not fit the table");
    }
  }
  return Status::Ok();
}

// False: they do not fit the columns.
bool Search::ReadTotals(const pb::FoundRow& found, RowGroup* group) {
  if (static_cast<size_t>(found.totals_size()) != options_.totals.size()) return false;
  for (int i = 0; i < found.totals_size(); ++i) {
    auto totals = ToTotals(schema_->columns[options_.totals[i]].type, found.totals(i));
    if (!totals.ok()) return false;
    group->totals.push_back(*std::move(totals));
  }
  ++account_.explain.groups_with_totals;
  return true;
}

// Takes in what a region says of its part.
bool Search::Take(const std::string& server, const Part& part, pb::RangeResult* result) {
  SubRange& sub_range = *part.sub_range;
  // A region is one, however many pages it answers with.
  account_.NoteCounters(part.region_id, result->counters(), sub_range.resume.empty());
  if (result->region_id() != part.region_id || result->start() != sub_range.range.start) {
    Failed(part.sub_range, Unavailable("region server " + server + " answered for other keys"));
    return true;
  }
  std::vector<RowGroup> rows;
  std::vector<std::string> keys;
  uint64_t rows_found = 0;
  for (const pb::FoundRow& found : result->rows()) {
    RowGroup group{.row = Row(schema_->columns.size()), .has_key = !result->groups()};
    if (result->groups()) {
      if (found.count() == 0) return false;
      group.count = found.count();
      ++account_.explain.groups;
    } else if (!KeyFormat(*schema_).Decode(found.key(), &group.row).ok()) {
      ++account_.explain.rows_unparsed;  // no row of the table
      continue;
    }
    if (!DecodeRow(*schema_, found.row(), &group.row).ok()) return false;
    if (result->totals() && !ReadTotals(found, &group)) return false;
    rows_found += group.count;
    rows.push_back(std::move(group));
    if (merge_.has_value()) keys.push_back(found.key());
  }
  fetched_ += rows_found;
  account_.NoteRows(server, part.region_start, rows_found);
  // The part of the sub-range that the region did not hold is asked again.
  const std::string& end = sub_range.range.end;
  const bool shorter = !result->end().empty() && (end.empty() || result->end() < end);
  if (shorter && !context_->options.faults.no_coverage_check) {
    SubRange tail{.range = {result->end(), sub_range.range.end},
                  .resume = sub_range.resume,
                  .map = SubRange::Map::kStale,
                  .position = sub_range.position,
                  .has_answered = sub_range.has_answered,
                  .in_order = sub_range.in_order};
    sub_range.range.end = result->end();
    idle_.push_back(sub_ranges_.insert(std::next(part.sub_range), std::move(tail)));
    if (merge_.has_value()) merge_->Place(idle_.back());
  }
  sub_range.backoff.Reset();
  sub_range.in_order = result->in_order();
  // A page of groups is taken together with the position behind it, or not at all: each of its rows
  // is then counted once, however often the page is asked for.
  const bool first_of_parts =
      result->groups() && !result->resume().empty() && account_.NoteInParts(part.region_id);
  if (!first_of_parts || !context_->options.faults.page_added_twice) {
    sub_range.resume = result->resume();
  }
  sub_range.done = result->resume().empty();
  if (merge_.has_value()) {
    merge_->AddRows(part.sub_range, std::move(rows), keys, result->in_order());
  } else {
    std::ranges::reverse(rows);
    sub_range.rows = std::move(rows);
  }
  if (sub_range.rows.empty()) {
    Emptied(part.sub_range);
  } else if (!options_.key_order && !merge_.has_value()) {
    ready_.push_back(part.sub_range);
  }
  return true;
}

void Search::Conclude() {
  if (!regions_) return;
  account_.Conclude(*context_, *schema_, plan_, *regions_, options_.explained_regions,
                    first_.has_value() ? first_->given() : given_);
}

}  // namespace tamis
