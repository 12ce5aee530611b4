#include "tamis/query/engine.h"

#include <algorithm>
#include <mutex>

#include "tamis/base/exception_status.h"
#include "tamis/base/random.h"
#include "tamis/cluster/faults.h"
#include "tamis/query/poller.h"
#include "tamis/query/query_context.h"
#include "tamis/query/search.h"
#include "tamis/query/write_delivery.h"

namespace tamis {
namespace {

Faults FaultsOf(const Engine::Options& options) {
  return options.faults != nullptr ? *options.faults : Faults{};
}

}  // namespace

struct Engine::State : QueryContext {
  using QueryContext::QueryContext;
  std::shared_ptr<Poller> poller;

  void CountWrites(const std::vector<Status>& outcomes, Duration time) {
    std::lock_guard lock(totals_mutex);
    ++totals.batches;
    totals.batch_time += time;
    for (const Status& outcome : outcomes) {
      const bool unknown = outcome.code() == StatusCode::kDeadlineExceeded;
      ++(outcome.ok() ? totals.writes : unknown ? totals.writes_unknown : totals.writes_refused);
    }
  }

  std::mutex totals_mutex;
  Totals totals;  // of writes
};

Engine::Engine(Cluster* cluster, Executor* executor, Options options)
    : state_(std::make_shared<State>(
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
  state_->poller = std::make_shared<Poller>(
      cluster, executor, state_->global,
      Poller::Options{
          .wait = options.poll_wait,
          .margin = options.poll_margin,
          .longest_pause = std::min<Duration>(std::chrono::seconds(1), options.request_timeout),
          .look_for_servers =
              std::min<Duration>(std::chrono::seconds(1), options.request_timeout / 4)},
      [tables = state_->tables](uint32_t table_id, uint64_t schema_version) {
        tables->Heard(table_id, schema_version);
      });
  state_->poller->Start();
}

Engine::~Engine() {
  state_->tables->Stop();
  if (state_->poller) state_->poller->Stop();
}

Cluster& Engine::cluster() { return *state_->cluster; }
Executor& Engine::executor() { return *state_->executor; }

Result<SchemaPtr> Engine::Table(const std::string& name) {
  return WithoutExceptions([&] { return state_->tables->Table(name); });
}
void Engine::ForgetTable(const std::string& name) { state_->tables->Forget(name); }

RowStream Engine::Search(SchemaPtr schema, SearchOptions options) {
  if (state_->poller) state_->poller->KeepLooking();
  return RowStream(
      std::make_shared<RowStream::State>(state_, std::move(schema), std::move(options)));
}

Result<std::optional<Row>> Engine::Get(SchemaPtr schema, const Row& key_row) {
  return WithoutExceptions([&] {
    std::vector<Predicate> equal;
    for (const uint32_t column : schema->key) {
      equal.push_back(Predicate::Compare(column, Predicate::Op::kEq, key_row[column]));
    }
    SearchOptions options;
    options.predicate = Predicate::And(std::move(equal));
    RowStream rows = Search(schema, std::move(options));
    return rows.Next();
  });
}

std::vector<Status> Engine::Apply(SchemaPtr schema, std::vector<Write> writes,
                                  const std::atomic<bool>* cancelled) {
  const Time begun = state_->executor->Now();
  std::vector<Status> outcomes = ApplyWrites(state_.get(), std::move(schema), writes, cancelled);
  state_->CountWrites(outcomes, state_->executor->Now() - begun);
  return outcomes;
}

bool Engine::WaitUntilRouted(const TableSchema& schema, Duration timeout) {
  std::vector<uint32_t> ids;
  for (const IndexSpec& index : schema.indexes) ids.push_back(index.id);
  const Time deadline = state_->executor->Now() + timeout;
  while (!state_->global->IsComplete(schema.id, ids, state_->executor->Now())) {
    if (state_->executor->Now() >= deadline) return false;
    Sleep(state_->executor, std::chrono::milliseconds(2));
  }
  return true;
}

Engine::Knowledge Engine::knowledge() const {
  const GlobalIndex::Stats stats = state_->global->stats(state_->executor->Now());
  return {.servers = stats.servers,
          .regions = stats.regions,
          .indexes_missing = stats.indexes_missing,
          .indexes_left_out = stats.indexes_left_out,
          .filter_bytes = stats.matrix_bytes,
          .max_filter_bytes = stats.max_bytes,
          .servers_without_lease = stats.servers_without_lease};
}

Engine::Totals Engine::totals() const {
  std::unique_lock lock(state_->totals_mutex);
  Totals totals = state_->totals;
  lock.unlock();
  totals.events = state_->global->stats().events;
  if (state_->poller == nullptr) return totals;
  totals.polls = state_->poller->answered();
  totals.polls_failed = state_->poller->failed();
  return totals;
}

std::vector<uint64_t> Engine::RoutedRegions(const TableSchema& schema) const {
  std::vector<uint32_t> ids;
  for (const IndexSpec& index : schema.indexes) ids.push_back(index.id);
  return state_->global->Routed(schema.id, ids, state_->executor->Now());
}

bool Engine::LeavesOut(uint32_t table_id, const RoutingTerm& asked, const std::string& key) const {
  const KeyRanges keys = KeyRanges::Of({key, key + '\0'});
  return state_->global->Find(table_id, keys, asked, state_->executor->Now())
      .excluded.Contains(key);
}

// ---- RowStream

struct RowStream::State : public tamis::Search {
  using tamis::Search::Search;
};

RowStream::RowStream(std::shared_ptr<State> state) : state_(std::move(state)) {}
RowStream::RowStream(RowStream&&) noexcept = default;
RowStream& RowStream::operator=(RowStream&&) noexcept = default;
RowStream::~RowStream() = default;

Result<std::optional<Row>> RowStream::Next() {
  TAMIS_ASSIGN_OR_RETURN(auto group, state_->Next());
  if (!group.has_value()) return std::optional<Row>();
  return std::optional<Row>(std::move(group->row));
}
Result<std::optional<RowGroup>> RowStream::NextGroup() { return state_->Next(); }
void RowStream::StopGrouping() { state_->StopGrouping(); }
const Explain& RowStream::explain() const { return state_->explain(); }

}  // namespace tamis
