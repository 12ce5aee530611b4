#include "tests/cluster/sim_cluster.h"

namespace tamis {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

SimCluster::SimCluster(const Options& options)
    : options_(options),
      executor_(options.seed, microseconds(200)),
      random_(options.seed * 7919 + 2) {
  // In some runs code takes time, too, so that what is due comes between two looks at the clock.
  if (options.seed % 4 == 1) executor_.set_step(microseconds(1 + options.seed / 4 % 50));
}

SimCluster::~SimCluster() {
  for (auto& engine : engines_) engine.reset();
  executor_.Clear();
  cluster_.reset();
}

// A third is as fast as allowed, a third as slow: pairs that differ most are common.
Executor* SimCluster::ClockOf(const std::string& node) {
  std::unique_ptr<NodeClock>& clock = clocks_[node];
  if (!clock) {
    const int most = options_.clock_drift;
    const uint64_t dice = random_.Uniform(3);
    const int between = static_cast<int>(random_.Uniform(static_cast<uint64_t>(2 * most + 1)));
    const int drift = dice == 0 ? -most : dice == 1 ? most : between - most;
    clock = std::make_unique<NodeClock>(&executor_, milliseconds(random_.Uniform(100'000)), drift);
  }
  return clock.get();
}

Status SimCluster::OpenCluster() {
  RocksCluster::Options options;
  options.store.directory = "/store";
  options.store.env = &env_;
  options.store.memtable_bytes = 4 << 20;
  options.store.background_compactions = false;
  options.store.writers.handed_entries = 0;  // one thread does it all
  options.servers = kServers;
  options.session_timeout = kSession;
  options.operation_timeout = seconds(3);
  options.balance = false;
  options.seed = options_.seed;
  options.executor_of = [this](const std::string& server) { return ClockOf(server); };
  options.server.feed.lease = kLease;
  options.server.feed.lease_margin = kLeaseMargin;
  options.server.feed.max_events = 200;
  options.server.feed.silence = milliseconds(400);
  if (options_.seed % 3 != 0) {  // replies are cut, bits come in parts
    options.server.feed.reply_bytes = 400;
    options.server.feed.projection_bytes = 40;
  }
  options.server.proof_term = milliseconds(150);
  options.server.heartbeat_interval = milliseconds(60);
  options.server.clear_delay = milliseconds(10);
  options.server.fence_searches = options_.fence_searches;
  options.server.feed.max_parked = 1;
  options.server.feed.next_poll = milliseconds(5);
  options.server.write_timeout = seconds(1);
  options.server.split_bytes = options_.split_bytes;
  options.server.copied_change_bytes = options_.copied_change_bytes;
  options.server.estimate_region_bytes = false;
  options.server.build_rows = options_.build_rows;
  options.server.recount = {.least = 20, .an_entry = 1};
  if (options_.seed % 5 == 2) options.server.filter_bytes = 400;  // little: most are bits alone
  options.server.page_rows = options_.small_pages ? 5 : 1000;
  if (options_.small_pages) options.server.page_candidates = 20;
  // The estimates beyond it are not the same in each run.
  options.server.probe_entries = 1'000'000;
  options.server.inline_steps = false;
  options.server.faults = options_.faults;
  options.heartbeat_link = [this](const std::string& server, std::function<void()> deliver) {
    if (random_.OneIn(30) || executor_.Now() < heartbeats_cut_[server]) return;
    executor_.PostAfter(microseconds(random_.Uniform(2000)), std::move(deliver));
  };
  TAMIS_ASSIGN_OR_RETURN(cluster_, RocksCluster::Open(options, &executor_));
  network_ = std::make_unique<SimNetwork>(cluster_.get(), &executor_, SimNetwork::Options{},
                                          &network_counts_);
  return Status::Ok();
}

Status SimCluster::Open() {
  TAMIS_RETURN_IF_ERROR(OpenCluster());
  for (size_t i = 0; i < kEngines; ++i) StartEngine(i);
  return Status::Ok();
}

void SimCluster::StartEngine(size_t i) {
  Engine::Options options;
  options.poll_wait = milliseconds(40);
  options.poll_margin = milliseconds(100);
  options.lease_margin = kLeaseMargin;
  options.request_timeout = milliseconds(250);
  options.write_timeout = seconds(5);
  options.seed = ++engine_seed_;
  options.faults = std::make_shared<const Faults>(options_.faults);
  engines_[i] =
      std::make_unique<Engine>(network_.get(), ClockOf("engine" + std::to_string(i)), options);
}

Status SimCluster::Crash(Saved saved) {
  for (auto& engine : engines_) engine.reset();
  executor_.Clear();
  asleep_.clear();
  heartbeats_cut_.clear();
  network_.reset();
  cluster_.reset();
  env_.set_failing(false);
  TAMIS_RETURN_IF_ERROR(ReplaceSavedFilters(saved));
  return Open();
}

// The cluster saved them, where no write was broken off; after a crash they would not be there.
Status SimCluster::ReplaceSavedFilters(Saved saved) {
  TAMIS_ASSIGN_OR_RETURN(auto store, Store::Open({.directory = "/store", .env = &env_}));
  Filters filters;
  std::unique_ptr<rocksdb::Iterator> it(
      store->db()->NewIterator(rocksdb::ReadOptions(), store->filters()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    filters.emplace(it->key().ToString(), it->value().ToString());
  }
  rocksdb::WriteBatch batch;
  if (saved == Saved::kOlder) {
    for (const auto& [key, value] : filters) batch.Delete(store->filters(), key);
    for (const auto& [key, value] : last_saved_) batch.Put(store->filters(), key, value);
  }
  if (saved == Saved::kNone) batch.Put(store->meta(), "X", "");
  if (saved == Saved::kAll) last_saved_ = std::move(filters);
  return batch.Count() == 0 ? Status::Ok() : store->Write(&batch);
}

std::string SimCluster::RandomServer() {
  return "rs" + std::to_string(1 + random_.Uniform(kServers));
}

void SimCluster::Kill(const std::string& server) {
  (void)cluster_->Kill(server);
  asleep_.insert(server);
}

void SimCluster::Pause(const std::string& server) {
  (void)cluster_->Pause(server);
  asleep_.insert(server);
}

void SimCluster::Expel(const std::string& server) { (void)cluster_->Expel(server); }

void SimCluster::Compact() {
  if (options_.fence_searches) (void)cluster_->Compact();
}

void SimCluster::Wake(const std::string& server) {
  (void)cluster_->Resume(server);
  asleep_.erase(server);
}

void SimCluster::WakeLater(const std::string& server, Duration after) {
  executor_.PostAfter(after, [this, server] { Wake(server); });
}

void SimCluster::WakeAll() {
  for (const auto& server : std::set(asleep_)) Wake(server);
  heartbeats_cut_.clear();
}

void SimCluster::CutAllPolls(Time until) {
  for (int i = 1; i <= kServers; ++i) network_->CutPolls("rs" + std::to_string(i), until);
}

std::optional<pb::RegionRecord> SimCluster::RegionOf(uint32_t table_id,
                                                     const std::string& key) const {
  for (const auto& region : cluster_->catalog().Regions(table_id)) {
    if (key >= region.start() && (region.end().empty() || key < region.end())) return region;
  }
  return std::nullopt;
}

std::shared_ptr<Region> SimCluster::OpenRegion(const pb::RegionRecord& record) const {
  const auto server = cluster_->LocalServer(record.server());
  if (!server || server->killed() || server->paused()) return nullptr;
  auto region = server->FindRegion(record.id());
  return region && region->info().epoch == record.epoch() && !region->closed() ? region : nullptr;
}

}  // namespace tamis
