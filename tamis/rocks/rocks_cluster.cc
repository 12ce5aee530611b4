#include "tamis/rocks/rocks_cluster.h"

#include <algorithm>

namespace tamis {

// ---- Start and end

Result<std::unique_ptr<RocksCluster>> RocksCluster::Open(Options options, Executor* executor) {
  if (options.servers < 1 || options.servers > 1000) {
    return InvalidArgument("an embedded cluster has 1 to 1000 region servers, not " +
                           std::to_string(options.servers));
  }
  std::unique_ptr<RocksCluster> cluster(new RocksCluster(options, executor));
  TAMIS_RETURN_IF_ERROR(cluster->Start());
  return cluster;
}

RocksCluster::RocksCluster(Options options, Executor* executor)
    : options_(std::move(options)), executor_(executor) {}

Status RocksCluster::Start() {
  TAMIS_ASSIGN_OR_RETURN(store_, Store::Open(options_.store));
  snapshots_ = std::make_unique<FilterSnapshots>(store_.get());
  TAMIS_ASSIGN_OR_RETURN(catalog_, Catalog::Load(store_.get()));
  ServerContext each;
  each.options = options_.server;
  each.store = store_.get();
  each.catalog = catalog_.get();
  each.fences = &fences_;
  each.snapshots = snapshots_.get();
  lives_ = std::make_shared<ServerLives>(
      ServerLives::Options{.session_timeout = options_.session_timeout,
                           .first_start_code = (catalog_->openings() << 24) + 1,
                           .heartbeat_link = options_.heartbeat_link,
                           .executor_of = options_.executor_of},
      std::move(each), executor_);
  // A former owner has proved nothing since it was expelled; its leases and its answers end with
  // its last proof.
  const Duration term = options_.server.proof_term;
  const Duration opening_wait = term + term * 3 / 100 + options_.server.feed.lease_margin;
  assignment_ =
      std::make_shared<RegionAssignment>(executor_, catalog_.get(), &fences_, lives_, opening_wait);
  changes_ = std::make_shared<RegionChanges>(executor_, options_.operation_timeout, catalog_.get(),
                                             &fences_, lives_, assignment_);
  schemas_ = std::make_unique<SchemaChanges>(executor_, options_.operation_timeout, options_.seed,
                                             catalog_.get(), &fences_, lives_, assignment_);
  jobs_ = std::make_shared<RocksJobs>(executor_, store_.get(), catalog_.get(), lives_, changes_,
                                      schemas_.get());
  lives_->OnSplit([weak = std::weak_ptr(changes_), balance = options_.balance] {
    const auto changes = weak.lock();
    if (changes && balance) changes->BalanceSoon();
  });
  for (int i = 1; i <= options_.servers; ++i) lives_->Start("rs" + std::to_string(i));
  if (const Status assigned = assignment_->AssignAll(); !assigned.ok()) {
    return Status(assigned.code(), assigned.message() +
                                       "; to read only, open it with --read-only "
                                       "(rocks:DIRECTORY?mode=ro)")
        .WithContext("cannot give the regions of store \"" + options_.store.directory +
                     "\" to its servers");
  }
  assignment_->Sweep();
  return Status::Ok();
}

RocksCluster::~RocksCluster() {
  if (!lives_) return;
  // Callbacks from here on find these gone.
  jobs_.reset();
  schemas_.reset();
  changes_.reset();
  assignment_.reset();
  SaveFilters();
  lives_->KillAll();
}

// No task runs any more. The filters of a region are right when its server has it by the catalog,
// and no write was broken off in it.
void RocksCluster::SaveFilters() {
  if (options_.store.read_only) return;
  std::vector<FilterSnapshots::Current> filters;
  for (const pb::RegionRecord& record : catalog_->Regions()) {
    auto server = lives_->FindRunning(record.server());
    if (!server || server->start_code() != record.start_code()) continue;
    auto region = server->FindRegion(record.id());
    if (!region || region->info().epoch != record.epoch() || !region->IsQuiet()) continue;
    const auto indexes = region->indexes();
    for (const auto& [index_id, state] : *indexes) {
      if (state.entries_complete) filters.push_back({record.id(), index_id, state.filter});
    }
  }
  // A filter that is not saved is counted at the next opening.
  if (snapshots_->Save(filters).ok()) store_->FlushBeforeClosing();
}

Status RocksCluster::Expel(const std::string& name) {
  TAMIS_RETURN_IF_ERROR(lives_->Expel(name));
  assignment_->GiveAwayUnserved();
  return Status::Ok();
}

size_t RocksCluster::pending_work() const {
  size_t pending = changes_->pending();
  for (const auto& server : lives_->Running()) pending += server->pending_builds();
  return pending;
}

// ---- What there is

void RocksCluster::ListServers(Callback<std::vector<ServerInfo>> done) {
  done(lives_->Infos(catalog_->Regions()));
}

void RocksCluster::ListRegions(const std::string& table, std::vector<KeyRange> stale,
                               Callback<std::vector<RegionInfo>> done) {
  auto schema = catalog_->Table(table);
  if (!schema.ok()) return done(schema.status());
  done(InfosOf(*schema, stale));
}

// The regions that hold keys of `wanted`; all regions when it is empty.
std::vector<RegionInfo> RocksCluster::InfosOf(const TableSchema& table,
                                              const std::vector<KeyRange>& wanted) const {
  std::vector<RegionInfo> infos;
  for (const pb::RegionRecord& region : catalog_->Regions(table.id)) {
    const KeyRange keys{region.start(), region.end()};
    if (!wanted.empty() &&
        std::ranges::none_of(wanted, [&](const KeyRange& range) { return keys.Overlaps(range); })) {
      continue;
    }
    auto server = lives_->Find(region.server());
    auto open = server ? server->FindRegion(region.id()) : nullptr;
    const RegionId id(region.id());
    infos.push_back({.id = id,
                     .name = id.ToString(),
                     .epoch = region.epoch(),
                     .table_id = region.table_id(),
                     .start = region.start(),
                     .end = region.end(),
                     .server = region.server(),
                     .size_bytes = open ? open->size_bytes.load() : 0,
                     .unserved = assignment_->WhyUnserved(region)});
  }
  return infos;
}

void RocksCluster::ListTables(Callback<std::vector<TableSchema>> done) { done(catalog_->Tables()); }

void RocksCluster::GetTable(const std::string& name, Callback<TableSchema> done) {
  done(catalog_->Table(name));
}

void RocksCluster::GetIndexProgress(const std::string& table, const std::string& index,
                                    Callback<IndexProgress> done) {
  auto schema = catalog_->Table(table);
  if (!schema.ok()) return done(schema.status());
  const IndexSpec* spec = schema->FindIndex(index);
  if (spec == nullptr) {
    return done(NotFound("table \"" + table + "\" has no index \"" + index + "\""));
  }
  IndexProgress progress;
  for (const pb::RegionRecord& record : catalog_->Regions(schema->id)) {
    ++progress.regions;
    auto server = lives_->FindRunning(record.server());
    auto region = server ? server->FindRegion(record.id()) : nullptr;
    auto filter = region ? region->filter(spec->id) : nullptr;
    if (filter && filter->published()) {
      ++progress.complete;
      progress.entries += filter->entries();
    } else if (auto failure = WhyIncomplete(record, region.get(), spec->id)) {
      progress.Add(*std::move(failure));
    }
  }
  done(progress);
}

// `open`: the region at its server; nullptr: it is not open there.
std::optional<IndexFailure> RocksCluster::WhyIncomplete(const pb::RegionRecord& record,
                                                        const Region* open,
                                                        uint32_t index_id) const {
  IndexFailure failure{.region = RegionId(record.id()), .server = record.server()};
  if (open == nullptr) {
    failure.reason = assignment_->WhyUnserved(record);
    if (failure.reason.ok()) failure.reason = Unavailable("it is not open there");
    return failure;
  }
  auto failures = open->failures(index_id);
  if (!failures.has_value()) return std::nullopt;
  failure.attempts = failures->attempts;
  failure.given_up = failures->given_up;
  failure.reason = std::move(failures->last);
  return failure;
}

void RocksCluster::GetStatus(Callback<ClusterStatus> done) {
  ListServers([this, done](Result<std::vector<ServerInfo>> servers) {
    if (!servers.ok()) return done(servers.status());
    ClusterStatus status{.pending_work = pending_work()};
    for (ServerInfo& info : *servers) {
      const auto server = lives_->Find(info.name);
      status.servers.push_back(server ? server->GetStatus() : ServerStatus{});
      status.servers.back().info = std::move(info);
    }
    done(std::move(status));
  });
}

}  // namespace tamis
