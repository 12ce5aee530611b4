#include "tamis/query/engine.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "tamis/base/random.h"
#include "tamis/cluster/error.h"
#include "tamis/query/gather.h"
#include "tamis/query/poller.h"
#include "tamis/query/region_map.h"
#include "tamis/query/search.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr Duration kBackOff = std::chrono::milliseconds(20);

pb::Mutation::Kind KindOf(Write::Kind kind) {
  switch (kind) {
    case Write::Kind::kPut:
      return pb::Mutation::PUT;
    case Write::Kind::kInsert:
      return pb::Mutation::INSERT_IF_ABSENT;
    case Write::Kind::kUpdate:
      return pb::Mutation::UPDATE;
    case Write::Kind::kDelete:
      return pb::Mutation::DELETE;
  }
  return pb::Mutation::PUT;
}

}  // namespace

struct Engine::State {
  State(Cluster* cluster, Executor* executor, const Options& options)
      : cluster(cluster),
        executor(executor),
        options(options),
        global(std::make_shared<GlobalIndex>(
            GlobalIndex::Options{.lease_margin = options.lease_margin,
                                 .coordinator = options.seed != 0 ? options.seed : SeedFromSystem(),
                                 .faults = options.faults})) {}

  Cluster* const cluster;
  Executor* const executor;
  const Options options;
  const std::shared_ptr<GlobalIndex> global;
  RegionMap regions;
  std::shared_ptr<Poller> poller;
  std::shared_ptr<const SearchContext> search_context;
  std::mutex mutex;
  std::map<std::string, SchemaPtr> schemas;

  Result<SchemaPtr> FetchTable(const std::string& name) {
    auto tables = Gather<TableSchema>(executor, options.request_timeout, nullptr,
                                      {[&](std::function<void(Result<TableSchema>)> done) {
                                        cluster->GetTable(name, std::move(done));
                                      }});
    if (!tables[0].ok()) return tables[0].status();
    auto schema = std::make_shared<const TableSchema>(std::move(*tables[0]));
    std::lock_guard lock(mutex);
    schemas[name] = schema;
    return SchemaPtr(schema);
  }

  Result<RegionMap::Regions> Regions(uint32_t table_id, bool refresh) {
    auto known = regions.Get(table_id);
    if (known && !refresh) return known;
    auto listed = Gather<std::vector<RegionInfo>>(
        executor, options.request_timeout, nullptr,
        {[&](std::function<void(Result<std::vector<RegionInfo>>)> done) {
          cluster->ListRegions(table_id, std::move(done));
        }});
    if (!listed[0].ok()) return listed[0].status();
    return regions.Set(table_id, std::move(*listed[0]));
  }
};

// The writes of one Apply call on their way.
class WriteBatchRun {
 public:
  WriteBatchRun(Engine::State* state, SchemaPtr schema, const std::vector<Write>& writes)
      : state_(*state), schema_(std::move(schema)), version_(schema_->version) {
    for (const Write& write : writes) {
      Item item;
      item.mutation.set_kind(KindOf(write.kind));
      item.mutation.set_key(EncodeKey(*schema_, write.row));
      if (write.kind != Write::Kind::kDelete) item.mutation.set_row(EncodeRow(*schema_, write.row));
      for (const uint32_t column : write.columns) {
        item.mutation.add_columns(schema_->columns[column].id);
      }
      if (write.condition.has_value()) {
        item.mutation.set_condition(SerializePredicate(*write.condition));
      }
      items_.push_back(std::move(item));
    }
  }

  std::vector<Status> Run() {
    const Time deadline = state_.executor->Now() + state_.options.write_timeout;
    bool refresh = false;
    while (std::ranges::any_of(items_, [](const Item& item) { return !item.settled; })) {
      const Time now = state_.executor->Now();
      if (now >= deadline) break;
      Round(refresh, deadline - now);
      refresh = std::ranges::any_of(items_, [](const Item& item) { return !item.settled; });
      if (refresh) {
        Sleep(state_.executor, kBackOff);
        RefreshSchema();
      }
    }
    std::vector<Status> statuses;
    for (Item& item : items_) {
      if (!item.settled && item.status.ok())
        item.status = Unavailable("no region server took the write in time");
      statuses.push_back(
          item.status.WithContext("cannot write to table \"" + schema_->name + "\""));
    }
    return statuses;
  }

 private:
  struct Item {
    pb::Mutation mutation;
    bool settled = false;
    Status status;  // the last failure while it is not settled
  };
  struct Request {
    pb::MutateRequest request;
    std::map<uint64_t, std::vector<size_t>> items;  // of each region, in order
  };

  void Settle(Item* item, Status status) {
    // Nothing was done: another try is safe. Anything else is an answer.
    item->settled = status.code() != StatusCode::kUnavailable && status.code() != StatusCode::kBusy;
    item->status = std::move(status);
  }

  void RefreshSchema() {
    auto schema = state_.FetchTable(schema_->name);
    if (schema.ok() && (*schema)->id == schema_->id) {
      version_ = (*schema)->version;  // columns keep their ids: the encoded rows stay right
    } else if (!schema.ok() && schema.status().code() == StatusCode::kNotFound) {
      for (Item& item : items_) {
        if (item.settled) continue;
        item.settled = true;
        item.status = schema.status();
      }
    }
  }

  void Round(bool refresh, Duration time_left) {
    auto regions = state_.Regions(schema_->id, refresh);
    if (!regions.ok()) {
      for (Item& item : items_) {
        if (!item.settled) Settle(&item, regions.status());
      }
      return;
    }
    std::map<std::string, Request> requests;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].settled) continue;
      const std::string& key = items_[i].mutation.key();
      auto region = std::ranges::upper_bound(**regions, key, {}, &RegionInfo::start);
      if (region == (*regions)->begin() || !std::prev(region)->Contains(key)) {
        Settle(&items_[i], Unavailable("no region holds the key"));
        continue;
      }
      --region;
      Add(*region, i, &requests[region->server]);
    }
    std::vector<std::function<void(std::function<void(Result<pb::MutateReply>)>)>> calls;
    std::vector<Request*> sent;
    for (auto& [server, request] : requests) {
      request.request.set_table_id(schema_->id);
      request.request.set_schema_version(version_);
      request.request.set_timeout_ns(static_cast<uint64_t>(time_left.count()));
      sent.push_back(&request);
      calls.push_back([this, server = server,
                       sent = &request](std::function<void(Result<pb::MutateReply>)> done) {
        state_.cluster->Server(server)->Mutate(sent->request, std::move(done));
      });
    }
    auto replies = Gather<pb::MutateReply>(
        state_.executor, std::min(time_left, state_.options.request_timeout), nullptr, calls);
    for (size_t i = 0; i < sent.size(); ++i) TakeReply(*sent[i], replies[i]);
  }

  void Add(const RegionInfo& region, size_t i, Request* request) {
    auto [found, is_new] = request->items.try_emplace(region.id);
    if (is_new) {
      auto* mutations = request->request.add_regions();
      mutations->set_region_id(region.id);
      mutations->set_epoch(region.epoch);
    }
    found->second.push_back(i);
    for (auto& mutations : *request->request.mutable_regions()) {
      if (mutations.region_id() == region.id) *mutations.add_mutations() = items_[i].mutation;
    }
  }

  void TakeReply(const Request& request, const Result<pb::MutateReply>& reply) {
    if (!reply.ok()) {
      Status status = reply.status();
      if (status.code() == StatusCode::kDeadlineExceeded) {
        status = DeadlineExceeded("a region server did not answer in time; the write may stand");
      }
      for (const auto& [region_id, items] : request.items) {
        for (const size_t i : items) Settle(&items_[i], status);
      }
      return;
    }
    std::map<uint64_t, const pb::RegionMutateResult*> results;
    for (const auto& result : reply->regions()) results[result.region_id()] = &result;
    for (const auto& [region_id, items] : request.items) {
      auto found = results.find(region_id);
      for (size_t k = 0; k < items.size(); ++k) {
        Item& item = items_[items[k]];
        if (found == results.end() ||
            (!found->second->has_error() && static_cast<int>(k) >= found->second->results_size())) {
          Settle(&item, DeadlineExceeded("the answer of a region is missing; the write may stand"));
        } else if (found->second->has_error()) {
          Settle(&item, ToStatus(found->second->error()));
        } else {
          Settle(&item, ToStatus(found->second->results(static_cast<int>(k))));
        }
      }
    }
  }

  Engine::State& state_;
  const SchemaPtr schema_;
  uint64_t version_;
  std::vector<Item> items_;
};

// ---- Engine

Engine::Engine(Cluster* cluster, Executor* executor, Options options)
    : state_(std::make_shared<State>(cluster, executor, options)) {
  state_->search_context = std::make_shared<const SearchContext>(SearchContext{
      cluster, executor, state_->global.get(), &state_->regions, options, options.faults});
  if (!options.polling) return;
  state_->poller = std::make_shared<Poller>(
      cluster, executor, state_->global,
      Poller::Options{.wait = options.poll_wait,
                      .timeout = options.request_timeout,
                      .look_for_servers = std::min<Duration>(std::chrono::seconds(1),
                                                             options.request_timeout / 4)});
  state_->poller->Start();
}

Engine::~Engine() {
  if (state_->poller) state_->poller->Stop();
}

Cluster& Engine::cluster() { return *state_->cluster; }
Executor& Engine::executor() { return *state_->executor; }

Result<SchemaPtr> Engine::Table(const std::string& name) {
  {
    std::lock_guard lock(state_->mutex);
    if (auto found = state_->schemas.find(name); found != state_->schemas.end())
      return found->second;
  }
  return state_->FetchTable(name);
}

void Engine::ForgetTable(const std::string& name) {
  std::lock_guard lock(state_->mutex);
  auto found = state_->schemas.find(name);
  if (found == state_->schemas.end()) return;
  state_->regions.Forget(found->second->id);
  state_->schemas.erase(found);
}

RowStream Engine::Search(SchemaPtr schema, SearchOptions options) {
  return RowStream(std::make_shared<RowStream::State>(state_->search_context, std::move(schema),
                                                      std::move(options)));
}

Result<std::optional<Row>> Engine::Get(SchemaPtr schema, const Row& key_row) {
  std::vector<Predicate> equal;
  for (const uint32_t column : schema->key) {
    equal.push_back(Predicate::Compare(column, Predicate::Op::kEq, key_row[column]));
  }
  SearchOptions options;
  options.predicate = Predicate::And(std::move(equal));
  RowStream rows = Search(std::move(schema), std::move(options));
  return rows.Next();
}

std::vector<Status> Engine::Apply(SchemaPtr schema, std::vector<Write> writes) {
  return WriteBatchRun(state_.get(), std::move(schema), writes).Run();
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

// ---- RowStream

struct RowStream::State : public tamis::Search {
  using tamis::Search::Search;
};

RowStream::RowStream(std::shared_ptr<State> state) : state_(std::move(state)) {}
RowStream::RowStream(RowStream&&) noexcept = default;
RowStream& RowStream::operator=(RowStream&&) noexcept = default;
RowStream::~RowStream() = default;

Result<std::optional<Row>> RowStream::Next() { return state_->Next(); }
const Explain& RowStream::explain() const { return state_->explain(); }

}  // namespace tamis
