#include "tamis/query/search.h"

#include <algorithm>
#include <iterator>

#include "tamis/cluster/error.h"
#include "tamis/query/gather.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

constexpr Duration kBackOff = std::chrono::milliseconds(20);

bool IsWorthAnotherTry(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kBusy ||
         code == StatusCode::kDeadlineExceeded;
}

}  // namespace

Search::Search(std::shared_ptr<EngineContext> context, SchemaPtr schema, SearchOptions options)
    : context_(std::move(context)), schema_(std::move(schema)), options_(std::move(options)) {}

Result<std::optional<Row>> Search::Next() {
  if (!begun_) {
    begun_ = true;
    if (Status status = Begin(); !status.ok()) ended_ = status;
  }
  while (!ended_.has_value()) {
    if (options_.limit > 0 && given_ >= options_.limit) {
      ended_ = Status::Ok();
      break;
    }
    if (auto row = TakeRow()) {
      ++given_;
      return row;
    }
    if (IsDone()) {
      ended_ = Status::Ok();
    } else if (Status status = FetchRound(); !status.ok()) {
      ended_ = status.WithContext("cannot search table \"" + schema_->name + "\"");
    }
  }
  if (!ended_->ok()) return *ended_;
  return std::optional<Row>();
}

Status Search::Begin() {
  TAMIS_RETURN_IF_ERROR(options_.predicate.Validate(*schema_));
  deadline_ = context_->executor->Now() + options_.timeout;
  plan_ = MakePlan(*schema_, options_.predicate,
                   {.use_filters = options_.use_filters,
                    .use_indexes = options_.use_indexes,
                    .key_order = options_.key_order});
  explain_.table = schema_->name;
  explain_.predicate = options_.predicate.ToString(*schema_);
  explain_.index = plan_.index;
  explain_.terms = plan_.terms;
  explain_.reason = plan_.reason;
  for (const KeyRange& range : plan_.keys.ranges()) pieces_.push_back({.range = range});
  regions_ = context_->tables.KnownRegions(schema_->id);
  if (!regions_) TAMIS_RETURN_IF_ERROR(RefreshRegions());
  const Time before = context_->executor->Now();
  Exclude();
  explain_.routing_time += context_->executor->Now() - before;
  return Status::Ok();
}

// Takes off what the filters exclude as of now.
void Search::Exclude() {
  if (plan_.routing.kind == RoutingTerm::Kind::kAll) return;
  GlobalIndex::Route route =
      context_->global->Find(schema_->id, plan_.keys, plan_.routing, context_->executor->Now());
  std::list<Piece> rest;
  for (Piece& piece : pieces_) {
    if (!piece.rows.empty() || piece.done) {
      rest.push_back(std::move(piece));
      continue;
    }
    KeyRanges left = KeyRanges::Of(piece.range);
    left.Subtract(route.excluded);
    for (const KeyRange& range : left.ranges())
      rest.push_back({.range = range, .resume = piece.resume});
  }
  pieces_ = std::move(rest);
  // Told as of the last time before the first answer.
  if (rows_of_region_.empty()) excluded_ = std::move(route.excluded);
}

Status Search::RefreshRegions() {
  auto regions = context_->tables.RefreshRegions(*schema_, options_.cancelled);
  if (!regions.ok()) return regions.status();
  if ((*regions)->empty()) return NotFound("the table does not exist any more");
  regions_ = std::move(*regions);
  return Status::Ok();
}

bool Search::IsDone() const {
  return std::ranges::all_of(pieces_, [](const Piece& p) { return p.done && p.rows.empty(); });
}

std::optional<Row> Search::TakeRow() {
  while (!pieces_.empty()) {
    Piece& first = pieces_.front();
    if (!first.rows.empty()) {
      Row row = std::move(first.rows.front());
      first.rows.pop_front();
      return row;
    }
    if (!first.done) break;
    pieces_.pop_front();
  }
  if (options_.key_order) return std::nullopt;
  for (Piece& piece : pieces_) {
    if (piece.rows.empty()) continue;
    Row row = std::move(piece.rows.front());
    piece.rows.pop_front();
    return row;
  }
  return std::nullopt;
}

uint64_t Search::Missing() const {
  const uint64_t wanted = options_.limit > 0 ? options_.limit : options_.first_rows;
  return wanted - std::min(fetched_, wanted);
}

// Makes every piece that is to be asked lie within one region.
void Search::Align(const std::vector<RegionInfo>& regions) {
  for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
    if (piece->done || !piece->rows.empty()) continue;
    auto region = std::ranges::upper_bound(regions, piece->range.start, {}, &RegionInfo::start);
    if (region == regions.begin()) continue;
    --region;
    const std::string& end = region->end;
    if (end.empty() || (!piece->range.end.empty() && piece->range.end <= end)) continue;
    Piece tail{.range = {end, piece->range.end}, .resume = piece->resume};
    piece->range.end = end;
    pieces_.insert(std::next(piece), std::move(tail));
  }
}

std::vector<Search::Request> Search::MakeRequests() {
  Align(*regions_);
  std::map<std::string, Request> requests;
  for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
    if (piece->done || !piece->rows.empty()) continue;
    auto region = std::ranges::upper_bound(*regions_, piece->range.start, {}, &RegionInfo::start);
    if (region == regions_->begin()) {
      map_is_old_ = true;
      continue;
    }
    --region;
    if (!region->Contains(piece->range.start) || region->server.empty()) {
      map_is_old_ = true;
      continue;
    }
    Request& request = requests[region->server];
    request.server = region->server;
    pb::SearchRange* range = request.request.add_ranges();
    range->set_region_id(region->id.number());
    range->set_epoch(region->epoch);
    range->set_start(piece->range.start);
    range->set_end(piece->range.end);
    range->set_resume(piece->resume);
    request.parts.push_back({piece, region->id.number(), region->start});
    // In key order the later pieces are asked once; then only the one that is due.
    if (options_.key_order && !piece->resume.empty()) break;
  }
  std::vector<Request> list;
  for (auto& [server, request] : requests) {
    request.request.set_table_id(schema_->id);
    request.request.set_schema_version(schema_->version);
    request.request.set_limit(Missing());
    for (const pb::Branch& branch : plan_.branches) *request.request.add_branches() = branch;
    for (uint32_t i = 0; i < schema_->columns.size(); ++i) {
      if (!options_.columns.has_value() ||
          std::ranges::find(*options_.columns, i) != options_.columns->end()) {
        request.request.add_columns(schema_->columns[i].id);
      }
    }
    list.push_back(std::move(request));
  }
  return list;
}

Status Search::FetchRound() {
  if (options_.cancelled != nullptr && options_.cancelled->load()) return Cancelled("cancelled");
  const Time now = context_->executor->Now();
  if (now >= deadline_) {
    std::string message = "the time is over";
    if (!last_failure_.ok()) message += "; the last failure: " + last_failure_.message();
    return DeadlineExceeded(message);
  }
  if (map_is_old_) {
    map_is_old_ = false;
    TAMIS_RETURN_IF_ERROR(RefreshRegions());
    Exclude();
    if (IsDone()) return Status::Ok();
  }
  std::vector<Request> requests = MakeRequests();
  std::vector<std::function<void(std::function<void(Result<pb::SearchReply>)>)>> calls;
  for (Request& request : requests) {
    auto shared = std::make_shared<pb::SearchRequest>(std::move(request.request));
    auto send = [context = context_, server = request.server,
                 shared](std::function<void(Result<pb::SearchReply>)> done) {
      context->cluster->Server(server)->Search(*shared, std::move(done));
    };
    if (requests.size() == 1) {
      calls.push_back(send);
      continue;
    }
    // Several servers work at the same time.
    calls.push_back([context = context_, send](std::function<void(Result<pb::SearchReply>)> done) {
      context->executor->Post([send, done = std::move(done)] { send(done); });
    });
  }
  explain_.requests += requests.size();
  auto replies = Gather<pb::SearchReply>(
      context_->executor, std::min(context_->options.request_timeout, deadline_ - now),
      options_.cancelled, calls);
  const Time answered = context_->executor->Now();
  explain_.server_time += answered - now;
  bool progress = false;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!replies[i].ok()) {
      const Status& status = replies[i].status();
      if (!IsWorthAnotherTry(status.code())) return status;
      last_failure_ = status;
      map_is_old_ = true;
      if (context_->options.faults.no_coverage_check) {
        for (const Part& part : requests[i].parts) part.piece->done = true;
      }
      continue;
    }
    // Results stand in the order of the ranges; those at the end may be missing.
    pb::SearchReply& reply = *replies[i];
    for (int j = 0; j < reply.results_size() && j < static_cast<int>(requests[i].parts.size());
         ++j) {
      const Part& part = requests[i].parts[static_cast<size_t>(j)];
      if (reply.results(j).has_error()) {
        Status status = ToStatus(reply.results(j).error());
        if (!IsWorthAnotherTry(status.code())) return status;
        last_failure_ = status;
        map_is_old_ = true;
        if (context_->options.faults.no_coverage_check) part.piece->done = true;
        continue;
      }
      if (!Take(requests[i].server, part, reply.mutable_results(j))) {
        return DataLoss("region server " + requests[i].server +
                        " sent rows that do not fit the table");
      }
      progress = true;
    }
  }
  explain_.merge_time += context_->executor->Now() - answered;
  if (!progress) Sleep(context_->executor, kBackOff);
  return Status::Ok();
}

// Takes in what a region says of its part.
bool Search::Take(const std::string& server, const Part& part, pb::RangeResult* result) {
  Piece& piece = *part.piece;
  const auto& counters = result->counters();
  explain_.index_seeks += counters.index_seeks();
  explain_.entries_read += counters.entries_read();
  explain_.rows_read += counters.rows_read();
  explain_.cells_undecodable += counters.cells_undecodable();
  explain_.rows_unparsed += counters.rows_unparsed();
  if (counters.scanned_regions() > 0) scanned_.insert(part.region_id);
  if (result->region_id() != part.region_id || result->start() != piece.range.start) {
    map_is_old_ = true;  // an answer to something else; the piece stays to be asked
    return true;
  }
  std::deque<Row> rows;
  for (const pb::FoundRow& found : result->rows()) {
    Row row(schema_->columns.size());
    if (!KeyFormat(*schema_).Decode(found.key(), &row).ok()) {
      ++explain_.rows_unparsed;  // no row of the table
      continue;
    }
    if (!DecodeRow(*schema_, found.row(), &row).ok()) return false;
    rows.push_back(std::move(row));
  }
  fetched_ += rows.size();
  servers_asked_.insert(server);
  rows_of_region_[part.region_start] += rows.size();
  // What the region did not hold of the piece stays to be asked.
  const bool shorter =
      !result->end().empty() && (piece.range.end.empty() || result->end() < piece.range.end);
  if (shorter && !context_->options.faults.no_coverage_check) {
    Piece tail{.range = {result->end(), piece.range.end}, .resume = piece.resume};
    piece.range.end = result->end();
    pieces_.insert(std::next(part.piece), std::move(tail));
    map_is_old_ = true;
  }
  piece.rows = std::move(rows);
  piece.resume = result->resume();
  piece.done = piece.resume.empty();
  return true;
}

void Search::Conclude() {
  if (!regions_) return;
  explain_.regions_total = regions_->size();
  explain_.regions_excluded_by_key = 0;
  std::set<std::string> servers;
  for (const RegionInfo& region : *regions_) {
    servers.insert(region.server);
    if (!plan_.keys.Overlaps({region.start, region.end})) ++explain_.regions_excluded_by_key;
  }
  explain_.servers_total = servers.size();
  explain_.rows_returned = given_;
  explain_.regions_asked = rows_of_region_.size();
  explain_.servers_asked = servers_asked_.size();
  explain_.regions_scanned = scanned_.size();
  if (plan_.routing.kind == RoutingTerm::Kind::kAll) return;
  const GlobalIndex::Reasons reasons = context_->global->Explain(
      schema_->id, plan_.keys, plan_.routing, excluded_, context_->executor->Now());
  explain_.regions_excluded_by_filter = reasons.excluded_by_filter;
  explain_.regions_excluded_by_range = reasons.excluded_by_range;
  explain_.regions_unknown = reasons.unknown;
  const std::set<std::string> candidates(reasons.candidates.begin(), reasons.candidates.end());
  explain_.false_positive_regions =
      static_cast<uint64_t>(std::ranges::count_if(rows_of_region_, [&](const auto& region) {
        return region.second == 0 && candidates.contains(region.first);
      }));
}

}  // namespace tamis
