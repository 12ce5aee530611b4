#include "tamis/rocks/rocks_cluster.h"

#include <algorithm>

#include "tamis/base/join.h"
#include "tamis/base/random.h"
#include "tamis/table/schema_change.h"

namespace tamis {

// What clients hold: finds the present life of a server at each call.
class RocksCluster::Stub : public RegionServer {
 public:
  Stub(std::shared_ptr<std::atomic<RocksCluster*>> cluster, std::string name)
      : cluster_(std::move(cluster)), name_(std::move(name)) {}

  void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override {
    if (auto server = Find()) return server->Mutate(request, std::move(done));
    done(Gone());
  }
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
    if (auto server = Find()) return server->Search(request, std::move(done));
    done(Gone());
  }
  void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override {
    if (auto server = Find()) return server->Poll(request, std::move(done));
    done(Gone());
  }

 private:
  std::shared_ptr<RocksRegionServer> Find() const {
    RocksCluster* cluster = cluster_->load();
    auto server = cluster == nullptr ? nullptr : cluster->LocalServer(name_);
    return server && !server->killed() ? server : nullptr;
  }
  Status Gone() const { return Unavailable("region server " + name_ + " is not running"); }

  const std::shared_ptr<std::atomic<RocksCluster*>> cluster_;
  const std::string name_;
};

// ---- Start and end

Result<std::unique_ptr<RocksCluster>> RocksCluster::Open(Options options, Executor* executor) {
  if (options.servers < 1 || options.servers > 1000) {
    return InvalidArgument("an embedded cluster has 1 to 1000 region servers, not " +
                           std::to_string(options.servers));
  }
  std::unique_ptr<RocksCluster> cluster(new RocksCluster(options, executor));
  TAMIS_ASSIGN_OR_RETURN(cluster->store_, Store::Open(options.store));
  cluster->snapshots_ = std::make_unique<FilterSnapshots>(cluster->store_.get());
  TAMIS_ASSIGN_OR_RETURN(cluster->catalog_, Catalog::Load(cluster->store_.get()));
  cluster->next_start_code_ = (cluster->catalog_->openings() << 24) + 1;
  for (int i = 1; i <= options.servers; ++i) cluster->StartServer("rs" + std::to_string(i));
  cluster->AssignAll();
  cluster->last_sweep_ = executor->Now();
  cluster->Sweep();
  return cluster;
}

RocksCluster::RocksCluster(Options options, Executor* executor)
    : options_(std::move(options)),
      executor_(executor),
      membership_(options_.session_timeout),
      self_(std::make_shared<std::atomic<RocksCluster*>>(this)) {}

RocksCluster::~RocksCluster() {
  self_->store(nullptr);
  if (catalog_) SaveFilters();
  for (auto& [name, server] : servers_) server->Kill();
}

// No task runs any more. The filters of a region are right when its server has it by the catalog,
// and no write was broken off in it.
void RocksCluster::SaveFilters() {
  std::vector<FilterSnapshots::Current> filters;
  for (const pb::RegionRecord& record : catalog_->Regions()) {
    auto server = LocalServer(record.server());
    if (!server || server->killed() || server->start_code() != record.start_code()) continue;
    auto region = server->FindRegion(record.id());
    if (!region || region->info().epoch != record.epoch() || !region->IsQuiet()) continue;
    const auto indexes = region->indexes();
    for (const auto& [index_id, state] : *indexes) {
      if (state.entries_complete) filters.push_back({record.id(), index_id, state.filter});
    }
  }
  // What is not saved is counted at the next opening.
  if (snapshots_->Save(filters).ok()) store_->FlushBeforeClosing();
}

void RocksCluster::StartServer(const std::string& name) {
  uint64_t start_code;
  {
    std::lock_guard lock(mutex_);
    start_code = next_start_code_++;
  }
  membership_.Join(name, start_code, executor_->Now());
  RocksRegionServer::Surroundings surroundings;
  surroundings.executor = options_.executor_of ? options_.executor_of(name) : executor_;
  surroundings.store = store_.get();
  surroundings.catalog = catalog_.get();
  surroundings.fences = &fences_;
  surroundings.snapshots = snapshots_.get();
  surroundings.heartbeat = [self = self_](const std::string& server, uint64_t code,
                                          std::function<void(bool)> done) {
    RocksCluster* cluster = self->load();
    if (cluster == nullptr) return;
    auto deliver = [self, server, code, done = std::move(done)] {
      RocksCluster* live = self->load();
      if (live == nullptr) return;
      done(live->membership_.Heartbeat(server, code, live->executor_->Now()));
    };
    if (cluster->options_.heartbeat_link) {
      cluster->options_.heartbeat_link(server, std::move(deliver));
    } else {
      deliver();
    }
  };
  surroundings.on_expelled = [self = self_](const std::string& server, uint64_t code) {
    RocksCluster* cluster = self->load();
    if (cluster == nullptr) return;
    auto expelled = cluster->LocalServer(server);
    if (!expelled || expelled->start_code() != code || expelled->killed()) return;
    expelled->Kill();
    cluster->StartServer(server);  // comes back empty, as a new process would
  };
  surroundings.on_split = [self = self_] {
    RocksCluster* cluster = self->load();
    if (cluster != nullptr && cluster->options_.balance) cluster->BalanceSoon();
  };
  auto server =
      RocksRegionServer::Start(name, start_code, options_.server, std::move(surroundings));
  std::lock_guard lock(mutex_);
  servers_[name] = std::move(server);
}

// Every region gets an owner. Leases of an earlier process died with it, so nobody has to wait.
void RocksCluster::AssignAll() {
  std::vector<pb::RegionRecord> regions = catalog_->Regions();
  if (regions.empty()) return;
  std::ranges::sort(regions, [](const auto& a, const auto& b) {
    return std::pair(a.table_id(), a.start()) < std::pair(b.table_id(), b.start());
  });
  Catalog::Change change;
  for (size_t i = 0; i < regions.size(); ++i) {
    regions[i].set_epoch(catalog_->NewEpoch());
    SetOwner("rs" + std::to_string(i % static_cast<size_t>(options_.servers) + 1), &regions[i]);
    change.put_regions.push_back(regions[i]);
  }
  if (!catalog_->Commit(change).ok()) return;  // the sweep tries again
  for (const auto& region : regions) {
    fences_.Of(region.id())->Advance(region.epoch());
    if (auto server = LocalServer(region.server())) server->OpenRegion(region, Duration(0));
  }
}

// ---- Dead servers

void RocksCluster::Sweep() {
  const Time now = executor_->Now();
  const Duration interval = options_.session_timeout / 4;
  if (now - last_sweep_ > interval + options_.session_timeout / 2) {
    // The whole process stood still, not the servers.
    membership_.Forgive(now);
  }
  last_sweep_ = now;
  membership_.Expire(now);
  GiveAwayUnserved();
  executor_->PostAfter(interval, [self = self_] {
    if (RocksCluster* cluster = self->load()) cluster->Sweep();
  });
}

void RocksCluster::GiveAwayUnserved() {
  for (const pb::RegionRecord& region : catalog_->Regions()) {
    if (IsServed(region)) continue;
    const std::string target = LeastLoaded();
    if (target.empty()) break;  // nobody lives
    (void)Assign(region, target, OpeningWait());
  }
}

// For how long a former owner that did not close its region in good order may be believed: it has
// proved nothing since it was expelled, its leases and its answers end with its last proof.
Duration RocksCluster::OpeningWait() const {
  const Duration term = options_.server.proof_term;
  return term + term * 3 / 100 + options_.server.feed.lease_margin;
}

Duration RocksCluster::WaitAfter(Result<bool> closed_in_order) const {
  return closed_in_order.ok() && *closed_in_order ? Duration(0) : OpeningWait();
}

// The life of the server that was given the region has not been declared dead.
bool RocksCluster::IsServed(const pb::RegionRecord& region) const {
  auto server = LocalServer(region.server());
  return server && server->start_code() == region.start_code() &&
         membership_.IsAlive(region.server());
}

void RocksCluster::SetOwner(const std::string& name, pb::RegionRecord* region) const {
  auto server = LocalServer(name);
  region->set_server(name);
  region->set_start_code(server ? server->start_code() : 0);
}

std::map<std::string, uint64_t> RocksCluster::Loads() const {
  std::map<std::string, uint64_t> loads;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, server] : servers_) {
      if (!server->killed() && membership_.IsAlive(name)) loads[name] = 0;
    }
  }
  for (const pb::RegionRecord& region : catalog_->Regions()) {
    if (auto found = loads.find(region.server()); found != loads.end()) ++found->second;
  }
  return loads;
}

std::string RocksCluster::LeastLoaded(const std::set<std::string>& without) const {
  std::string least;
  uint64_t least_load = 0;
  for (const auto& [name, load] : Loads()) {
    if (without.contains(name)) continue;
    if (least.empty() || load < least_load) {
      least = name;
      least_load = load;
    }
  }
  return least;
}

bool RocksCluster::IsCurrent(const pb::RegionRecord& record) const {
  const auto now = catalog_->Region(record.id());
  return now.has_value() && now->epoch() == record.epoch();
}

Status RocksCluster::Assign(pb::RegionRecord record, const std::string& server, Duration wait) {
  {
    const auto fence = fences_.Of(record.id());
    const auto excluded = fence->Exclude();
    if (!IsCurrent(record)) return Unavailable("the region has changed");
    // Completed indexes may have been noted since the record was read.
    record = *catalog_->Region(record.id());
    record.set_epoch(catalog_->NewEpoch());
    SetOwner(server, &record);
    TAMIS_RETURN_IF_ERROR(catalog_->Commit({.put_regions = {record}}));
    fence->AdvanceExcluded(record.epoch());
  }
  if (auto local = LocalServer(server)) local->OpenRegion(record, wait);
  return Status::Ok();
}

// Opens a region again that was closed for something that did not come about, unless somebody else
// has decided about it since.
void RocksCluster::Reopen(const pb::RegionRecord& record, Duration wait) {
  const std::string target = membership_.IsAlive(record.server()) ? record.server() : LeastLoaded();
  if (!target.empty()) (void)Assign(record, target, wait);
}

std::shared_ptr<RocksRegionServer> RocksCluster::LocalServer(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto found = servers_.find(name);
  return found == servers_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<RocksRegionServer>> RocksCluster::LiveServers() const {
  std::vector<std::shared_ptr<RocksRegionServer>> servers;
  std::lock_guard lock(mutex_);
  for (const auto& [name, server] : servers_) {
    if (!server->killed()) servers.push_back(server);
  }
  return servers;
}

std::shared_ptr<RegionServer> RocksCluster::Server(const std::string& name) {
  return std::make_shared<Stub>(self_, name);
}

Status RocksCluster::Expel(const std::string& name) {
  if (!LocalServer(name)) return NotFound("no region server \"" + name + "\"");
  membership_.Expel(name);
  GiveAwayUnserved();
  return Status::Ok();
}

Status RocksCluster::Kill(const std::string& name) {
  auto server = LocalServer(name);
  if (!server) return NotFound("no region server \"" + name + "\"");
  server->Kill();
  return Status::Ok();
}

Status RocksCluster::Pause(const std::string& name) {
  auto server = LocalServer(name);
  if (!server) return NotFound("no region server \"" + name + "\"");
  if (server->killed()) return FailedPrecondition("region server " + name + " is not running");
  server->Pause();
  return Status::Ok();
}

Status RocksCluster::Resume(const std::string& name) {
  auto server = LocalServer(name);
  if (!server) return NotFound("no region server \"" + name + "\"");
  if (!server->killed()) {
    server->Resume();
    return Status::Ok();
  }
  // The sweep gives what the dead life owned to the living.
  StartServer(name);
  return Status::Ok();
}

size_t RocksCluster::pending_work() const {
  size_t pending = static_cast<size_t>(moving_.load()) + (balancing_ ? 1 : 0);
  for (const auto& server : LiveServers()) pending += server->pending_builds();
  return pending;
}

// ---- What there is

void RocksCluster::ListServers(Callback<std::vector<ServerInfo>> done) {
  std::vector<ServerInfo> infos;
  const auto regions = catalog_->Regions();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, server] : servers_) {
      ServerInfo info{.name = name};
      if (server->killed()) {
        info.state = ServerInfo::State::kDead;
      } else if (server->paused()) {
        info.state = ServerInfo::State::kPaused;
      }
      info.regions = static_cast<uint64_t>(std::ranges::count_if(
          regions, [&](const auto& region) { return region.server() == info.name; }));
      infos.push_back(std::move(info));
    }
  }
  std::ranges::sort(infos, {},
                    [](const ServerInfo& info) { return std::pair(info.name.size(), info.name); });
  done(std::move(infos));
}

void RocksCluster::ListRegions(const std::string& table, std::vector<KeyRange> stale,
                               Callback<std::vector<RegionInfo>> done) {
  auto schema = catalog_->Table(table);
  if (!schema.ok()) return done(schema.status());
  done(InfosOf(*schema, stale));
}

// Of the regions that hold keys of `wanted`; of all when it is empty.
std::vector<RegionInfo> RocksCluster::InfosOf(const TableSchema& table,
                                              const std::vector<KeyRange>& wanted) const {
  std::vector<RegionInfo> infos;
  for (const pb::RegionRecord& region : catalog_->Regions(table.id)) {
    const KeyRange keys{region.start(), region.end()};
    if (!wanted.empty() &&
        std::ranges::none_of(wanted, [&](const KeyRange& range) { return keys.Overlaps(range); })) {
      continue;
    }
    auto server = LocalServer(region.server());
    auto open = server ? server->FindRegion(region.id()) : nullptr;
    const RegionId id(region.id());
    infos.push_back({.id = id,
                     .name = id.ToString(),
                     .epoch = region.epoch(),
                     .table_id = region.table_id(),
                     .start = region.start(),
                     .end = region.end(),
                     .server = region.server(),
                     .size_bytes = open ? open->size_bytes.load() : 0});
  }
  return infos;
}

void RocksCluster::ListTables(Callback<std::vector<TableSchema>> done) { done(catalog_->Tables()); }

void RocksCluster::GetTable(const std::string& name, Callback<TableSchema> done) {
  done(catalog_->Table(name));
}

// ---- Schemas

void RocksCluster::CreateTable(TableSchema schema, Callback<TableSchema> done) {
  pb::RegionRecord region;
  if (Status status = CommitTable(&schema, &region); !status.ok()) return done(status);
  fences_.Of(region.id())->Advance(region.epoch());
  if (auto server = LocalServer(region.server())) server->OpenRegion(region, Duration(0));
  done(std::move(schema));
}

// Gives ids to the table and to its first region.
Status RocksCluster::CommitTable(TableSchema* schema, pb::RegionRecord* region) {
  std::lock_guard lock(schema_mutex_);
  if (catalog_->Table(schema->name).ok()) {
    return AlreadyExists("cannot create table \"" + schema->name + "\": there is one");
  }
  TAMIS_ASSIGN_OR_RETURN(*schema, NewTable(std::move(*schema), catalog_->NewTableId()));
  for (IndexSpec& index : schema->indexes) {
    if (index.seed == 0) index.seed = NewSeed(schema->id, index.id);
    region->add_complete_indexes(index.id);  // there is nothing to index yet
  }
  region->set_id(catalog_->NewRegionId());
  region->set_epoch(catalog_->NewEpoch());
  region->set_table_id(schema->id);
  SetOwner(LeastLoaded(), region);
  return catalog_->Commit({.put_tables = {*schema}, .put_regions = {*region}});
}

uint64_t RocksCluster::NewSeed(uint32_t table_id, uint32_t index_id) const {
  if (options_.seed == 0) return SeedFromSystem();
  return Mix(options_.seed + (uint64_t{table_id} << 32 | index_id));
}

void RocksCluster::DropTable(const std::string& table, DoneCallback done) {
  const Status status = CommitDrop(table);
  done(status.WithContext("cannot drop table \"" + table + "\""));
}

// Nobody writes to the regions any more, or everything stays as it is.
Status RocksCluster::CommitDrop(const std::string& name) {
  std::lock_guard lock(schema_mutex_);
  TAMIS_ASSIGN_OR_RETURN(const TableSchema schema, catalog_->Table(name));
  std::vector<std::shared_ptr<Fence>> fences;
  std::vector<std::unique_lock<std::shared_mutex>> excluded;
  for (const pb::RegionRecord& region : catalog_->Regions(schema.id)) {
    fences.push_back(fences_.Of(region.id()));
    excluded.push_back(fences.back()->Exclude());
  }
  TAMIS_RETURN_IF_ERROR(catalog_->Commit({.erase_tables = {schema.id}}));
  const uint64_t epoch = catalog_->NewEpoch();
  for (auto& fence : fences) fence->AdvanceExcluded(epoch);
  excluded.clear();
  for (auto& server : LiveServers()) server->CloseTable(schema.id);
  return Status::Ok();
}

Result<TableSchema> RocksCluster::ChangeSchema(
    const std::string& table, const std::function<Result<TableSchema>(TableSchema)>& change) {
  std::lock_guard lock(schema_mutex_);
  TAMIS_ASSIGN_OR_RETURN(TableSchema schema, catalog_->Table(table));
  TAMIS_ASSIGN_OR_RETURN(schema, change(std::move(schema)));
  TAMIS_RETURN_IF_ERROR(catalog_->Commit({.put_tables = {schema}}));
  return schema;
}

// Tells the servers. A paused one follows when it goes on, and is not waited for: until then it
// refuses writes of the new version. A dead one's regions are opened with the new schema.
void RocksCluster::Broadcast(const TableSchema& schema, Callback<TableSchema> done) {
  auto once = Once("change table \"" + schema.name + "\"", [schema, done](Status status) {
    if (status.ok()) {
      done(schema);
    } else {
      done(status);
    }
  });
  auto join = std::make_shared<Join<bool>>(true, [once](bool) { once(Status::Ok()); });
  for (auto& server : LiveServers()) {
    if (server->paused()) {
      server->UpdateSchema(schema.id, [] {});
    } else {
      join->Begin();
      server->UpdateSchema(schema.id, [join] { join->End(); });
    }
  }
  join->End();
}

void RocksCluster::AddColumn(const std::string& table, Column column, Callback<TableSchema> done) {
  auto schema = ChangeSchema(
      table, [&](TableSchema old) { return WithColumn(std::move(old), std::move(column)); });
  if (!schema.ok()) return done(schema.status());
  Broadcast(*schema, std::move(done));
}

void RocksCluster::CreateIndex(const std::string& table, IndexSpec index,
                               Callback<TableSchema> done) {
  auto schema = ChangeSchema(table, [&](TableSchema old) {
    if (index.seed == 0) index.seed = NewSeed(old.id, old.next_index_id);
    return WithIndex(std::move(old), std::move(index));
  });
  if (!schema.ok()) return done(schema.status());
  Broadcast(*schema, std::move(done));
}

void RocksCluster::DropIndex(const std::string& table, const std::string& index,
                             Callback<TableSchema> done) {
  auto schema =
      ChangeSchema(table, [&](TableSchema old) { return WithoutIndex(std::move(old), index); });
  if (!schema.ok()) return done(schema.status());
  Broadcast(*schema, std::move(done));
}

void RocksCluster::RebuildIndex(const std::string& table, const std::string& index,
                                DoneCallback done, const std::function<void()>& part) {
  auto schema = catalog_->Table(table);
  if (!schema.ok()) return done(schema.status());
  if (!index.empty() && schema->FindIndex(index) == nullptr) {
    return done(
        NotFound("cannot rebuild index \"" + index + "\": table \"" + table + "\" has none"));
  }
  std::vector<uint32_t> ids;
  for (const IndexSpec& spec : schema->indexes) {
    if (index.empty() || spec.name == index) ids.push_back(spec.id);
  }
  std::map<std::string, std::shared_ptr<RocksRegionServer>> servers;
  for (const pb::RegionRecord& region : catalog_->Regions(schema->id)) {
    auto server = LocalServer(region.server());
    if (!server || server->killed() || server->paused() || !server->FindRegion(region.id())) {
      return done(Unavailable("cannot rebuild indexes of table \"" + table + "\": region " +
                              std::to_string(region.id()) +
                              " is not open now; wait until it is, then do it again"));
    }
    servers[server->name()] = std::move(server);
  }
  auto join = std::make_shared<Join<Status>>(Status::Ok(), [table, done](const Status& status) {
    done(status.WithContext("cannot rebuild indexes of table \"" + table + "\""));
  });
  for (const uint32_t id : ids) {
    for (auto& [name, server] : servers) {
      join->Begin();
      DoneCallback mended = [join, part](const Status& status) {
        part();
        EndWith(join.get(), status);
      };
      server->MendIndex(schema->id, id, UnlessKilled(server, std::move(mended)));
    }
  }
  join->End();
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
    auto server = LocalServer(record.server());
    auto region = server ? server->FindRegion(record.id()) : nullptr;
    auto filter = region ? region->filter(spec->id) : nullptr;
    if (!filter || !filter->published()) continue;
    ++progress.complete;
    progress.entries += filter->entries();
  }
  done(progress);
}

void RocksCluster::Check(const std::string& table, Callback<CheckReport> done,
                         const std::function<void()>& part) {
  auto schema = catalog_->Table(table);
  if (!schema.ok()) return done(schema.status());
  if (Status status = CheckTiling(catalog_->Regions(schema->id)); !status.ok()) {
    return done(status.WithContext("table \"" + table + "\""));
  }
  const size_t expected = catalog_->Regions(schema->id).size();
  auto join = std::make_shared<Join<Result<CheckReport>>>(
      CheckReport(), [done, expected](Result<CheckReport> report) {
        if (report.ok() && report->regions < expected) {
          return done(Unavailable("only " + std::to_string(report->regions) + " of " +
                                  std::to_string(expected) +
                                  " regions are open; wait until all are, then check again"));
        }
        done(std::move(report));
      });
  for (auto& server : LiveServers()) {
    if (server->paused()) continue;
    join->Begin();
    Callback<CheckReport> checked = [join, part](const Result<CheckReport>& report) {
      part();
      join->End([&](Result<CheckReport>* all) { AddTo(report, all); });
    };
    server->Check(schema->id, UnlessKilled(server, std::move(checked)));
  }
  join->End();
}

template <class Answer>
std::function<void(Answer)> RocksCluster::UnlessKilled(std::shared_ptr<RocksRegionServer> server,
                                                       std::function<void(Answer)> done) {
  // Looks now and then: what a killed server was doing is dropped, its callbacks too.
  struct Watch : std::enable_shared_from_this<Watch> {
    std::atomic<bool> answered = false;
    std::function<void(Answer)> done;
    std::shared_ptr<RocksRegionServer> server;
    Executor* executor = nullptr;
    Duration interval{};

    void Answered(Answer answer) {
      if (!answered.exchange(true)) done(std::move(answer));
    }
    void Look() {
      if (answered) return;
      if (server->killed())
        return Answered(Unavailable("region server " + server->name() + " died"));
      executor->PostAfter(interval, [self = this->shared_from_this()] { self->Look(); });
    }
  };
  auto watch = std::make_shared<Watch>();
  watch->done = std::move(done);
  watch->server = std::move(server);
  watch->executor = executor_;
  watch->interval = options_.session_timeout / 4;
  watch->Look();
  return [watch](Answer answer) { watch->Answered(std::move(answer)); };
}

// ---- Jobs

void RocksCluster::StartJob(JobSpec spec, Callback<uint64_t> done) {
  const auto parts = CountParts(spec);
  if (!parts.ok()) return done(parts.status().WithContext("cannot " + spec.ToString()));
  const uint64_t job = jobs_.Add(spec, *parts);
  executor_->Post([self = self_, job, spec = std::move(spec)] {
    if (RocksCluster* cluster = self->load()) cluster->RunJob(job, spec);
  });
  done(job);
}

Result<uint64_t> RocksCluster::CountParts(const JobSpec& spec) const {
  if (spec.kind == JobSpec::Kind::kBalance || spec.kind == JobSpec::Kind::kCompact) return 1;
  TAMIS_ASSIGN_OR_RETURN(const TableSchema schema, catalog_->Table(spec.table));
  if (spec.kind == JobSpec::Kind::kCheck) return LiveServers().size();
  if (!spec.index.empty() && schema.FindIndex(spec.index) == nullptr) {
    return NotFound("table \"" + spec.table + "\" has no index \"" + spec.index + "\"");
  }
  std::set<std::string> servers;
  for (const pb::RegionRecord& region : catalog_->Regions(schema.id)) {
    servers.insert(region.server());
  }
  return servers.size() * (spec.index.empty() ? schema.indexes.size() : 1);
}

void RocksCluster::RunJob(uint64_t job, const JobSpec& spec) {
  const auto end = [self = self_, job](const Status& status) {
    if (RocksCluster* cluster = self->load()) cluster->jobs_.End(job, status);
  };
  const auto update = [self = self_, job](const std::function<void(JobInfo*)>& change) {
    if (RocksCluster* cluster = self->load()) cluster->jobs_.Update(job, change);
  };
  const auto part = [update] { update([](JobInfo* info) { ++info->done; }); };
  switch (spec.kind) {
    case JobSpec::Kind::kCheck:
      return Check(
          spec.table,
          [end, update](const Result<CheckReport>& report) {
            if (report.ok()) update([&](JobInfo* info) { info->check = *report; });
            end(report.status());
          },
          part);
    case JobSpec::Kind::kRebuildIndex:
      return RebuildIndex(spec.table, spec.index, end, part);
    case JobSpec::Kind::kBalance:
      return Balance([end, update](const Result<uint64_t>& moved) {
        if (moved.ok()) update([&](JobInfo* info) { info->moved = *moved; });
        end(moved.status());
      });
    case JobSpec::Kind::kCompact:
      return end(Compact());
  }
}

void RocksCluster::GetStatus(Callback<ClusterStatus> done) {
  ListServers([this, done](Result<std::vector<ServerInfo>> servers) {
    if (!servers.ok()) return done(servers.status());
    ClusterStatus status{.pending_work = pending_work()};
    for (ServerInfo& info : *servers) {
      const auto server = LocalServer(info.name);
      status.servers.push_back(server ? server->GetStatus() : ServerStatus{});
      status.servers.back().info = std::move(info);
    }
    done(std::move(status));
  });
}

// ---- Regions

DoneCallback RocksCluster::Once(const std::string& doing, DoneCallback done) {
  auto called = std::make_shared<std::atomic<bool>>(false);
  auto once = [called, done = std::move(done)](Status status) {
    if (!called->exchange(true)) done(std::move(status));
  };
  executor_->PostAfter(options_.operation_timeout, [once, doing] {
    once(DeadlineExceeded("cannot " + doing +
                          ": a region server did not answer in time; it may still happen"));
  });
  return once;
}

Result<pb::RegionRecord> RocksCluster::FindRegion(RegionId region, std::string_view doing) const {
  auto record = catalog_->Region(region.number());
  if (record.has_value()) return *std::move(record);
  return NotFound("cannot " + std::string(doing) + " region " + region.ToString() +
                  ": there is none");
}

void RocksCluster::SplitRegion(RegionId region, std::string key, DoneCallback done) {
  const auto record = FindRegion(region, "split");
  if (!record.ok()) return done(record.status());
  auto server = LocalServer(record->server());
  if (!server || server->killed()) {
    return done(Unavailable("cannot split region " + region.ToString() +
                            ": its region server is not running"));
  }
  server->SplitRegion(region.number(), std::move(key),
                      Once("split region " + region.ToString(), std::move(done)));
}

void RocksCluster::MoveRegion(RegionId region, const std::string& target, DoneCallback done) {
  const auto record = FindRegion(region, "move");
  if (!record.ok()) return done(record.status());
  if (!LocalServer(target)) {
    return done(NotFound("cannot move region " + region.ToString() +
                         ": there is no region server \"" + target + "\""));
  }
  auto source = LocalServer(record->server());
  if (!source || source->killed() || !membership_.IsAlive(target)) {
    return done(Unavailable("cannot move region " + region.ToString() +
                            ": a region server is not running"));
  }
  if (record->server() == target) return done(Status::Ok());
  auto once = Once("move region " + region.ToString(), std::move(done));
  // Counted for as long as the order lives: a server that dies drops it unanswered.
  ++moving_;
  const std::shared_ptr<void> moving(nullptr, [self = self_](void*) {
    if (RocksCluster* cluster = self->load()) --cluster->moving_;
  });
  source->CloseRegion(record->id(), record->epoch(),
                      [self = self_, moving, record = *record, target, once](Result<bool> closed) {
                        RocksCluster* cluster = self->load();
                        if (cluster == nullptr) return;
                        if (!closed.ok()) return once(closed.status());
                        // The target may have died meanwhile; the region must not stay closed.
                        const std::string to =
                            cluster->membership_.IsAlive(target) ? target : cluster->LeastLoaded();
                        once(cluster->Assign(record, to, cluster->WaitAfter(closed)));
                      });
}

void RocksCluster::MergeRegion(RegionId region, DoneCallback done) {
  const auto left = FindRegion(region, "merge");
  if (!left.ok()) return done(left.status());
  std::optional<pb::RegionRecord> right;
  for (const auto& other : catalog_->Regions(left->table_id())) {
    if (!left->end().empty() && other.start() == left->end()) right = other;
  }
  if (!right.has_value()) {
    return done(FailedPrecondition("cannot merge region " + region.ToString() +
                                   ": it is the last one of its table"));
  }
  auto left_server = LocalServer(left->server());
  auto right_server = LocalServer(right->server());
  if (!left_server || !right_server || left_server->killed() || right_server->killed()) {
    return done(Unavailable("cannot merge region " + region.ToString() +
                            ": a region server is not running"));
  }
  auto once = Once("merge region " + region.ToString(), std::move(done));
  // Whatever becomes of it, the left region must not stay closed.
  auto settled = std::make_shared<std::atomic<bool>>(false);
  left_server->CloseRegion(
      left->id(), left->epoch(),
      [=, this, self = self_, left = *left, right = *right](Result<bool> left_closed) {
        if (self->load() == nullptr) return;
        if (!left_closed.ok()) return once(left_closed.status());
        const Duration left_wait = WaitAfter(left_closed);
        const auto abandon = [=, this](const Status& status) {
          if (self->load() == nullptr || settled->exchange(true)) return;
          Reopen(left, left_wait);
          once(status);
        };
        // A server that does not answer within two sessions is dead.
        executor_->PostAfter(2 * options_.session_timeout, [abandon] {
          abandon(Unavailable("the right region was not closed in time"));
        });
        right_server->CloseRegion(right.id(), right.epoch(), [=, this](Result<bool> right_closed) {
          if (self->load() == nullptr) return;
          if (!right_closed.ok()) return abandon(right_closed.status());
          const Duration right_wait = WaitAfter(right_closed);
          const Status merged = settled->exchange(true)
                                    ? Unavailable("it took too long")
                                    : CommitMerge(left, right, std::max(left_wait, right_wait));
          if (!merged.ok()) {
            Reopen(left, left_wait);
            Reopen(right, right_wait);
          }
          once(merged);
        });
      });
}

// Of two closed neighbours.
Status RocksCluster::CommitMerge(const pb::RegionRecord& left, const pb::RegionRecord& right,
                                 Duration wait) {
  pb::RegionRecord merged;
  {
    const auto left_fence = fences_.Of(left.id());
    const auto right_fence = fences_.Of(right.id());
    const bool in_order = left.id() < right.id();
    const auto first = (in_order ? left_fence : right_fence)->Exclude();
    const auto second = (in_order ? right_fence : left_fence)->Exclude();
    if (!IsCurrent(left) || !IsCurrent(right)) return Unavailable("the regions have changed");
    merged.set_id(catalog_->NewRegionId());
    merged.set_epoch(catalog_->NewEpoch());
    merged.set_table_id(left.table_id());
    merged.set_start(left.start());
    merged.set_end(right.end());
    SetOwner(membership_.IsAlive(left.server()) ? left.server() : LeastLoaded(), &merged);
    TAMIS_RETURN_IF_ERROR(
        catalog_->Commit({.put_regions = {merged}, .erase_regions = {left.id(), right.id()}}));
    left_fence->AdvanceExcluded(merged.epoch());
    right_fence->AdvanceExcluded(merged.epoch());
  }
  fences_.Of(merged.id())->Advance(merged.epoch());
  if (auto server = LocalServer(merged.server())) server->OpenRegion(merged, wait);
  return Status::Ok();
}

void RocksCluster::Balance(Callback<uint64_t> done) {
  BalanceNext(std::make_shared<uint64_t>(0), std::move(done));
}

void RocksCluster::BalanceNext(std::shared_ptr<uint64_t> moved, Callback<uint64_t> done) {
  const auto loads = Loads();
  if (loads.empty()) return done(Unavailable("no region server is running"));
  const auto by_load = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto least = std::ranges::min_element(loads, by_load);
  const auto most = std::ranges::max_element(loads, by_load);
  if (most->second <= least->second + 1) return done(*moved);
  // The youngest region of the fullest server: of a split, the upper daughter.
  std::optional<pb::RegionRecord> region;
  for (const auto& record : catalog_->Regions()) {
    if (record.server() == most->first) region = record;
  }
  if (!region.has_value()) return done(*moved);
  MoveRegion(RegionId(region->id()), least->first, [self = self_, moved, done](Status status) {
    RocksCluster* cluster = self->load();
    if (cluster == nullptr) return;
    if (!status.ok()) return done(status);
    ++*moved;
    cluster->executor_->Post([self, moved, done] {
      if (RocksCluster* live = self->load()) live->BalanceNext(moved, done);
    });
  });
}

void RocksCluster::BalanceSoon() {
  if (balancing_.exchange(true)) return;
  Balance([self = self_](Result<uint64_t>) {
    if (RocksCluster* cluster = self->load()) cluster->balancing_ = false;
  });
}

}  // namespace tamis
