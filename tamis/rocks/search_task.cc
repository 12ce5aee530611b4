#include "tamis/rocks/search_task.h"

#include <algorithm>
#include <utility>

#include "tamis/cluster/error.h"
#include "tamis/rocks/answer_exceptions.h"

namespace tamis {
namespace {

// Part of the request's time is for the way back.
Time DeadlineOf(const pb::SearchRequest& request, const ServerContext& context) {
  const Duration most = context.options.search_timeout;
  const Duration timeout =
      request.timeout_ns() > 0 ? std::min(SentDuration(request.timeout_ns()), most) : most;
  return context.executor->Now() + timeout / 4 * 3;
}

}  // namespace

SearchTask::SearchTask(std::shared_ptr<const ServerContext> context,
                       std::shared_ptr<OpenRegions> regions, std::shared_ptr<SearchCounts> counts,
                       const pb::SearchRequest& request, Callback<pb::SearchReply> done)
    : context_(std::move(context)),
      regions_(std::move(regions)),
      counts_(std::move(counts)),
      request_(request),
      done_(std::move(done)),
      deadline_(DeadlineOf(request, *context_)) {}

void SearchTask::Start() {
  context_->executor->Step([self = shared_from_this()] {
    AnswerExceptions(self->done_, [&] {
      const ServerContext& context = *self->context_;
      if (context.options.faults.search_beyond_proof || context.is_verified()) return self->Next();
      const Status status =
          Unavailable("server " + context.name + " does not know that it still owns its regions");
      self->done_(status);
    });
  });
}

pb::RangeResult SearchTask::SearchRange(const pb::SearchRange& range, uint64_t max_rows) {
  const auto failed = [&](const Status& status) {
    pb::RangeResult result;
    result.set_region_id(range.region_id());
    result.set_epoch(range.epoch());
    SetError(status, result.mutable_error());
    return result;
  };
  if (auto id = RegionId::Of(range.region_id()); !id.ok()) return failed(id.status());
  auto region = regions_->Find(range.region_id());
  if (!region || region->info().epoch != range.epoch() ||
      region->info().table_id != request_.table_id()) {
    return failed(regions_->NotOpen(range.region_id()));
  }
  const SchemaPtr schema = region->schema();
  auto found = searchers_.find(schema->version);
  if (found == searchers_.end()) {
    found =
        searchers_.emplace(schema->version, Searcher::Create(*context_, request_, schema)).first;
  }
  if (!found->second.ok()) {
    pb::RangeResult result = failed(found->second.status());
    if (schema->version != request_.schema_version()) {
      result.mutable_error()->set_schema_version(schema->version);
    }
    return result;
  }
  return (*found->second)->Search(*region, range, max_rows, deadline_);
}

void SearchTask::Next() {
  const uint64_t limit = request_.limit();
  const RegionServerOptions& options = context_->options;
  while (next_ < request_.ranges_size()) {
    const uint64_t counted = request_.has_order() ? 0 : rows_;  // towards the limit
    if (limit > 0 && counted >= limit) break;
    if (next_ > 0 && context_->executor->Now() >= deadline_) break;
    const bool groups = request_.groups();
    if ((!groups && rows_ >= options.page_rows) || reply_.ByteSizeLong() > options.page_bytes)
      break;
    const pb::SearchRange& range = request_.ranges(next_++);
    constexpr uint64_t kNoLimit = uint64_t{1} << 40;  // groups are bounded by their bytes
    uint64_t rows = groups ? kNoLimit : options.page_rows - rows_;
    if (limit > 0) rows = std::min(rows, limit - counted);
    pb::RangeResult result = SearchRange(range, rows);
    rows_ += result.counters().rows_returned();
    *reply_.add_results() = std::move(result);
    ++counts_->regions;
    if (!context_->executor->steps_are_inline()) {
      context_->executor->Step(
          [self = shared_from_this()] { AnswerExceptions(self->done_, [&] { self->Next(); }); });
      return;
    }
  }
  ++counts_->searches;
  done_(std::move(reply_));
}

}  // namespace tamis
