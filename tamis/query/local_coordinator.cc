#include "tamis/query/local_coordinator.h"

#include <algorithm>

#include "tamis/base/random.h"
#include "tamis/cluster/faults.h"
#include "tamis/query/search.h"
#include "tamis/query/write_delivery.h"

namespace tamis {
namespace {

Faults FaultsOf(const Engine::Options& options) {
  return options.faults != nullptr ? *options.faults : Faults{};
}

std::vector<uint32_t> IndexesOf(const TableSchema& schema) {
  std::vector<uint32_t> ids;
  for (const IndexSpec& index : schema.indexes) ids.push_back(index.id);
  return ids;
}

}  // namespace

LocalCoordinator::LocalCoordinator(Cluster* cluster, Executor* executor,
                                   const Engine::Options& options)
    : context_(std::make_shared<QueryContext>(
          cluster, executor,
          QueryContext::Options{.request_timeout = options.request_timeout,
                                .write_timeout = options.write_timeout,
                                .request_ranges = std::max<size_t>(1, options.request_ranges),
                                .requests_in_flight = std::max(1, options.requests_in_flight),
                                .faults = FaultsOf(options)},
          std::make_shared<GlobalIndex>(GlobalIndex::Options{
              .lease_margin = options.lease_margin,
              .coordinator = options.seed != 0 ? options.seed : SeedFromSystem(),
              .max_bytes = options.max_filter_bytes,
              .faults = FaultsOf(options)}))) {
  if (!options.polling) return;
  poller_ = std::make_shared<Poller>(
      cluster, executor, context_->global,
      Poller::Options{
          .wait = options.poll_wait,
          .margin = options.poll_margin,
          .longest_pause = std::min<Duration>(std::chrono::seconds(1), options.request_timeout),
          .look_for_servers =
              std::min<Duration>(std::chrono::seconds(1), options.request_timeout / 4)},
      [tables = context_->tables](uint32_t table_id, uint64_t schema_version) {
        tables->Heard(table_id, schema_version);
      });
  poller_->Start();
}

LocalCoordinator::~LocalCoordinator() {
  context_->tables->Stop();
  if (poller_) poller_->Stop();
}

void LocalCoordinator::Leave(Duration patience) {
  if (!poller_) return;
  poller_->Stop();
  poller_->Leave(patience);
}

std::unique_ptr<FoundRows> LocalCoordinator::Search(SchemaPtr schema, SearchOptions options) {
  if (poller_) poller_->KeepLooking();
  return std::make_unique<tamis::Search>(context_, std::move(schema), std::move(options));
}

std::vector<Status> LocalCoordinator::Apply(SchemaPtr schema, const std::vector<Write>& writes,
                                            const std::atomic<bool>* cancelled) {
  const Time begun = executor().Now();
  std::vector<Status> outcomes = ApplyWrites(context_.get(), std::move(schema), writes, cancelled);
  const std::lock_guard lock(totals_mutex_);
  ++totals_.batches;
  totals_.batch_time += executor().Now() - begun;
  for (const Status& outcome : outcomes) {
    const bool unknown = outcome.code() == StatusCode::kDeadlineExceeded;
    ++(outcome.ok() ? totals_.writes : unknown ? totals_.writes_unknown : totals_.writes_refused);
  }
  return outcomes;
}

bool LocalCoordinator::WaitUntilRouted(const TableSchema& schema, Duration timeout) {
  const std::vector<uint32_t> ids = IndexesOf(schema);
  const Time deadline = executor().Now() + timeout;
  while (!context_->global->IsComplete(schema.id, ids, executor().Now())) {
    if (executor().Now() >= deadline) return false;
    Sleep(&executor(), std::chrono::milliseconds(2));
  }
  return true;
}

Engine::Knowledge LocalCoordinator::knowledge() {
  const GlobalIndex::Stats stats = context_->global->stats(executor().Now());
  return {.servers = stats.servers,
          .regions = stats.regions,
          .indexes_missing = stats.indexes_missing,
          .indexes_left_out = stats.indexes_left_out,
          .filters_coarse = stats.filters_coarse,
          .filter_bytes = stats.matrix_bytes,
          .max_filter_bytes = stats.max_bytes,
          .servers_without_lease = stats.servers_without_lease};
}

Engine::Totals LocalCoordinator::totals() {
  std::unique_lock lock(totals_mutex_);
  Engine::Totals totals = totals_;
  lock.unlock();
  totals.events = context_->global->stats().events;
  if (poller_ == nullptr) return totals;
  totals.polls = poller_->answered();
  totals.polls_failed = poller_->failed();
  return totals;
}

std::vector<uint64_t> LocalCoordinator::RoutedRegions(const TableSchema& schema) {
  return context_->global->Routed(schema.id, IndexesOf(schema), executor().Now());
}

bool LocalCoordinator::LeavesOut(uint32_t table_id, const RoutingTerm& asked,
                                 const std::string& key) {
  const KeyRanges keys = KeyRanges::Of({key, key + '\0'});
  return context_->global->Find(table_id, keys, asked, executor().Now()).excluded.Contains(key);
}

}  // namespace tamis
