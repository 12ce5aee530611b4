#include "tamis/hbase_cluster/table_job.h"

#include <algorithm>

#include "tamis/base/random.h"
#include "tamis/cluster/error.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Backoff kPauses(milliseconds(5), seconds(1));
constexpr uint64_t kFewestSampled = 16;  // values of a region

void Add(const pb::RegionCheck& check, CheckReport* report) {
  ++report->regions;
  report->rows += check.rows();
  report->entries += check.entries();
  report->filter_lookups += check.filter_lookups();
  report->garbage += check.garbage();
  report->incomplete += check.incomplete();
  report->missing_entries += check.missing_entries();
  report->foreign_entries += check.foreign_entries();
  report->missing_in_filter += check.missing_in_filter();
  report->undecodable_cells += check.undecodable_cells();
  report->unparsed_rows += check.unparsed_rows();
  for (const std::string& problem : check.problems()) report->Note(problem);
}

}  // namespace

CheckReport TableJob::report() const {
  CheckReport report;
  for (const auto& [start, done] : done_) Add(done.check, &report);
  return report;
}

std::vector<ValueSample> TableJob::samples() const {
  std::vector<ValueSample> samples;
  for (const auto& [start, done] : done_) {
    const auto& values = done.sample.values();
    samples.push_back({.values = {values.begin(), values.end()},
                       .distinct = std::max<uint64_t>(done.sample.distinct(), values.size())});
    std::ranges::sort(samples.back().values);
  }
  return samples;
}

TableJob::TableJob(Actions actions, uint32_t table_id, Options options)
    : actions_(std::move(actions)),
      table_id_(table_id),
      options_(options),
      polls_(kPauses),
      pauses_(kPauses) {}

Result<std::optional<Duration>> TableJob::Step(const OnProgress& on_progress) {
  on_progress_ = on_progress;
  if (!last_news_) last_news_ = actions_.now();
  bool is_started = true;
  if (!IsPolling()) {
    done_before_ = done_.size();
    polls_ = kPauses;
    auto parts = StartMissing();
    is_started = parts.ok();
    if (!is_started) {
      if (!IsTransient(parts.status().code())) return parts.status();
      last_failure_ = parts.status();
    }
    parts_ = is_started ? *std::move(parts) : std::vector<Part>();
  }
  TAMIS_RETURN_IF_ERROR(Poll());
  if (IsPolling()) return std::optional(polls_.Next());
  if (is_started && IsWhole()) return std::optional<Duration>();
  if (done_.size() != done_before_) pauses_.Reset();
  if (actions_.now() - *last_news_ > options_.patience) {
    return Unavailable("some regions could not be processed: " + last_failure_.message());
  }
  return std::optional(pauses_.Next());
}

bool TableJob::IsPolling() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return !part.ended; });
}

// Starts jobs for the unfinished regions at their current servers.
Result<std::vector<TableJob::Part>> TableJob::StartMissing() {
  TAMIS_ASSIGN_OR_RETURN(const auto regions, actions_.list());
  total_ = regions.size();
  std::map<std::string, pb::StartJobRequest> requests;
  for (const RegionInfo& region : regions) {
    const auto done = done_.find(region.start);
    if (done != done_.end() && done->second.end == region.end) continue;
    if (region.server.empty()) {
      last_failure_ = Unavailable("region " + region.name + " is open nowhere");
    } else {
      requests[region.server].add_region_ids(region.id.number());
    }
  }
  std::vector<Part> parts;
  for (auto& [server, request] : requests) {
    request.set_job(SeedFromSystem());
    request.set_kind(options_.kind);
    request.set_table_id(table_id_);
    request.set_index_id(options_.index_id);
    if (options_.sample_size > 0) {
      request.set_most_values(static_cast<uint32_t>(
          std::max(kFewestSampled, options_.sample_size / std::max<uint64_t>(total_, 1))));
    }
    const auto reply = actions_.start(server, request);
    const Status status = !reply.ok()          ? reply.status()
                          : reply->has_error() ? FailureOf(reply->error())
                                               : Status::Ok();
    // The job may have started all the same; its result is ignored.
    if (!status.ok()) {
      last_failure_ = status;
      continue;
    }
    parts.push_back({.server = server, .job = request.job()});
    for (const uint64_t id : request.region_ids()) parts.back().regions.emplace_back(id);
  }
  return parts;
}

// Polls each job that has not ended. A job whose server cannot be reached counts as ended.
Status TableJob::Poll() {
  for (Part& part : parts_) {
    if (part.ended) continue;
    pb::GetJobRequest request;
    request.set_job(part.job);
    const auto reply = actions_.get(part.server, request, part.regions);
    if (!reply.ok() || reply->has_error()) {
      last_failure_ = reply.ok() ? FailureOf(reply->error()) : reply.status();
      part.ended = true;  // the server may have died: start again elsewhere
      continue;
    }
    if (!reply->ended()) {
      last_news_ = actions_.now();
      continue;
    }
    part.ended = true;
    for (const pb::RegionJobResult& result : reply->results()) {
      if (!result.has_error()) {
        Take(result);
        continue;
      }
      last_failure_ = FailureOf(result.error());
      if (last_failure_.code() != StatusCode::kUnavailable) return last_failure_;
    }
  }
  return Status::Ok();
}

void TableJob::Take(const pb::RegionJobResult& result) {
  last_news_ = actions_.now();
  const KeyRange keys{result.start(), result.end()};
  std::erase_if(done_, [&](const auto& older) {
    return keys.Overlaps({older.first, older.second.end});
  });
  done_[keys.start] = {keys.end, result.check(), result.sample()};
  on_progress_(done_.size(), std::max<uint64_t>(total_, done_.size()));
}

bool TableJob::IsWhole() const {
  std::string next;
  for (const auto& [start, done] : done_) {
    if (start != next) return false;
    if (done.end.empty()) return true;
    next = done.end;
  }
  return false;
}

}  // namespace tamis
