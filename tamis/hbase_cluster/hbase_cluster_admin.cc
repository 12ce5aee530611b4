#include "tamis/hbase_cluster/hbase_cluster_admin.h"

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include "tamis/base/answers.h"
#include "tamis/base/backoff.h"
#include "tamis/base/random.h"
#include "tamis/hbase/filter.h"
#include "tamis/hbase_cluster/attachment.h"
#include "tamis/hbase_cluster/compaction_job.h"
#include "tamis/hbase_cluster/installation.h"
#include "tamis/hbase_cluster/payload.pb.h"
#include "tamis/hbase_cluster/table_job.h"
#include "tamis/table/definition.h"
#include "tamis/table/schema_change.h"

namespace tamis {
namespace {

constexpr int kWorkers = 4;
constexpr int kJobWorkers = 4;
constexpr Duration kAnswerTime = std::chrono::seconds(5);
constexpr Duration kJobAnswerTime = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kDescribeTime(5'000);
// The tries of a schema change that conflicts with concurrent changes.
constexpr int kTriesOfChange = 5;
// The number of rows of a newly attached table that are compared with the schema.
constexpr uint64_t kRowsLookedAt = 100;

// Whether the refusal may end soon: the region is moving, or has to be compacted first. With
// kDeadlineExceeded, the change may go on.
bool IsNotYet(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kBusy;
}

uint64_t NewSeed() { return std::max<uint64_t>(1, SeedFromSystem()); }

// The first version of the schema, with a random id, and random seeds where none are given.
Result<TableSchema> FirstVersion(TableSchema wanted) {
  const auto drawn = static_cast<uint32_t>(SeedFromSystem() >> 33);
  TAMIS_ASSIGN_OR_RETURN(TableSchema stored, NewTable(std::move(wanted), drawn + 1));
  for (IndexSpec& index : stored.indexes) {
    if (index.seed == 0) index.seed = NewSeed();
  }
  return stored;
}

Installation::Server Described(const hbase::ServerName& name,
                               const std::vector<std::string>& coprocessors,
                               const hbase::ServiceReply& reply) {
  using Silence = Installation::Server::Silence;
  Installation::Server server{.address = name.address.ToString(),
                              .coprocessors = coprocessors,
                              .described = DataLoss("its answer cannot be read"),
                              .silence = reply.no_service ? Silence::kNoJar
                                         : reply.denied   ? Silence::kDenied
                                                          : Silence::kOther};
  pb::Payload payload;
  pb::DescribeReply described;
  if (!reply.answer.ok()) {
    server.described = reply.answer.status();
  } else if (payload.ParseFromString(*reply.answer) && described.ParseFromString(payload.bytes())) {
    server.described = std::move(described);
  }
  return server;
}

Status TakenBy(const IndexedTable& table) {
  return AlreadyExists("\"" + table.stored.name + "\" is HBase table \"" + table.full_name() +
                       "\" already; choose another name");
}

}  // namespace

Result<std::unique_ptr<HBaseClusterAdmin>> HBaseClusterAdmin::Open(Options options,
                                                                   HBaseCluster* cluster,
                                                                   Executor* executor) {
  TAMIS_ASSIGN_OR_RETURN(auto client, hbase::Client::Open(options.client));
  return std::unique_ptr<HBaseClusterAdmin>(
      new HBaseClusterAdmin(options, cluster, executor, std::move(client)));
}

HBaseClusterAdmin::HBaseClusterAdmin(const Options& options, HBaseCluster* cluster,
                                     Executor* executor, std::unique_ptr<hbase::Client> client)
    : options_(options),
      cluster_(cluster),
      executor_(executor),
      client_(std::move(client)),
      workers_(kWorkers),
      job_workers_(kJobWorkers) {}

HBaseClusterAdmin::~HBaseClusterAdmin() {
  closed_ = true;
  client_->Close();
  workers_.Stop();
  job_workers_.Stop();
}

template <class T>
void HBaseClusterAdmin::Do(Callback<T> done, std::function<Result<T>()> work) {
  workers_.Post([this, done = std::move(done), work = std::move(work)] {
    executor_->Post([done, answer = work()] { done(answer); });
  });
}

void HBaseClusterAdmin::DoStatus(DoneCallback done, std::function<Status()> work) {
  workers_.Post([this, done = std::move(done), work = std::move(work)] {
    executor_->Post([done, status = work()] { done(status); });
  });
}

// ---- Servers

bool HBaseClusterAdmin::Can(Capability capability) const {
  return capability == Capability::kBalance || capability == Capability::kCompact ||
         capability == Capability::kAttachTable || capability == Capability::kExamine;
}

void HBaseClusterAdmin::KillServer(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kKillServer));
}

void HBaseClusterAdmin::PauseServer(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kPauseServer));
}

void HBaseClusterAdmin::ResumeServer(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kResumeServer));
}

void HBaseClusterAdmin::GetStatus(Callback<ClusterStatus> done) {
  Do<ClusterStatus>(std::move(done), [this] { return AskAll(); });
}

std::vector<Result<pb::StatusReply>> HBaseClusterAdmin::AskStatus(
    const std::vector<std::string>& servers, uint32_t table_id) {
  pb::StatusRequest request;
  request.set_table_id(table_id);
  Answers<Result<pb::StatusReply>> answers(executor_);
  for (size_t i = 0; i < servers.size(); ++i) {
    cluster_->Stub(servers[i])->GetStatus(request, answers.To(i));
  }
  std::vector<Result<pb::StatusReply>> replies(servers.size(),
                                               DeadlineExceeded("it did not answer in time"));
  const Wait wait{.deadline = executor_->Now() + kAnswerTime, .cancelled = &closed_};
  for (size_t missing = servers.size(); missing > 0; --missing) {
    auto answer = answers.Next(wait);
    if (!answer.has_value()) break;
    replies[answer->question] = std::move(answer->value);
  }
  return replies;
}

// Servers that have no indexed regions or do not answer are left out.
Result<ClusterStatus> HBaseClusterAdmin::AskAll() {
  TAMIS_ASSIGN_OR_RETURN(
      const auto servers,
      AwaitResult<std::vector<ServerInfo>>(
          executor_, {.deadline = executor_->Now() + kAnswerTime, .cancelled = &closed_},
          [&](auto done) { cluster_->ListServers(std::move(done)); }));
  std::vector<std::string> names;
  for (const ServerInfo& server : servers) names.push_back(server.name);
  const auto replies = AskStatus(names, 0);
  ClusterStatus status;
  for (size_t i = 0; i < servers.size(); ++i) {
    ServerStatus& server = status.servers.emplace_back();
    server.info = servers[i];
    if (!replies[i].ok()) continue;
    const pb::StatusReply& reply = *replies[i];
    server.filter_bytes = reply.filter_bytes();
    server.feed_events = reply.feed_events();
    server.feed_bytes = reply.feed_bytes();
    server.searches = reply.searches();
    server.regions_searched = reply.regions_searched();
    server.file_filters_asked = reply.file_filters_asked();
    server.file_filters_said_no = reply.file_filters_said_no();
    server.file_filters_missing = reply.file_filters_missing();
    for (const pb::CoordinatorStatus& one : reply.coordinators()) {
      server.coordinators.push_back(
          {.coordinator = one.coordinator(),
           .events_behind = one.events_behind(),
           .lease_left = Duration(static_cast<Duration::rep>(one.lease_left_ns()))});
    }
    status.pending_work += reply.pending_work();
  }
  return status;
}

void HBaseClusterAdmin::Examine(Callback<std::vector<Finding>> done) {
  Do<std::vector<Finding>>(std::move(done), [this] { return ExamineInstallation(); });
}

// Queries the processes only, not the tables.
Result<Installation> HBaseClusterAdmin::AskProcesses() {
  const hbase::ServiceCall call{.service = "tamis.pb.Installation",
                                .method = "Describe",
                                .request = pb::Payload().SerializeAsString(),
                                .repeat = true,
                                .timeout = kDescribeTime};
  TAMIS_ASSIGN_OR_RETURN(const hbase::ClusterState state, client_->Cluster());
  std::vector<std::future<hbase::ServiceReply>> replies;
  for (const auto& server : state.servers) {
    auto reply = std::make_shared<std::promise<hbase::ServiceReply>>();
    replies.push_back(reply->get_future());
    client_->ExecServer(server.name, call, [reply](hbase::ServiceReply answered) {
      reply->set_value(std::move(answered));
    });
  }
  Installation installation{
      .program_version = TAMIS_VERSION,
      .hbase_version = state.version,
      .master = Described(state.master, state.master_coprocessors, client_->ExecMaster(call)),
      .servers = {},
      .tables = {}};
  for (size_t i = 0; i < replies.size(); ++i) {
    const auto& server = state.servers[i];
    installation.servers.push_back(Described(server.name, server.coprocessors, replies[i].get()));
  }
  return installation;
}

Result<std::vector<Finding>> HBaseClusterAdmin::ExamineInstallation() {
  TAMIS_ASSIGN_OR_RETURN(Installation installation, AskProcesses());
  TAMIS_ASSIGN_OR_RETURN(auto tables, client_->Tables());
  for (hbase::TableDescription& table : tables) {
    auto indexed = ReadIndexedTable(table);
    installation.tables.push_back({std::move(table), std::move(indexed)});
  }
  return tamis::Examine(installation);
}

// ---- Schemas

void HBaseClusterAdmin::CreateTable(TableSchema schema, Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done), [this, schema = std::move(schema)] { return Create(schema); });
}

Result<TableSchema> HBaseClusterAdmin::Create(TableSchema schema) {
  const std::string what = "cannot create table \"" + schema.name + "\"";
  const auto existing = cluster_->Find(schema.name);
  if (existing.ok()) return AlreadyExists(what + ": there is one");
  if (existing.status().code() != StatusCode::kNotFound) return existing.status().WithContext(what);
  TAMIS_ASSIGN_OR_RETURN(TableSchema stored, FirstVersion(InCells(std::move(schema))));
  // A user who may create tables need not have the right to query the servers.
  TAMIS_RETURN_IF_ERROR(CheckJar(/*strict=*/false).WithContext(what));
  std::string hbase_name = HBaseTableName(cluster_->name_space(), stored.name);
  IndexedTable table{.description = {.name = std::move(hbase_name)}, .stored = std::move(stored)};
  table.description = WithOrigin(DescribeIndexed(std::move(table.description), table.stored),
                                 TableOrigin::kCreated);
  Status created = client_->CreateTable(table.description);
  if (created.code() == StatusCode::kNotFound) {  // the namespace
    created = client_->CreateNamespace(cluster_->name_space());
    if (created.ok() || created.code() == StatusCode::kAlreadyExists) {
      created = client_->CreateTable(table.description);
    }
  }
  if (created.code() == StatusCode::kAlreadyExists) {
    return AlreadyExists(what + ": HBase has a table \"" + table.description.name +
                         "\", which is not the store's table of that name; attach it: tamis table "
                         "attach");
  }
  TAMIS_RETURN_IF_ERROR(created.WithContext(what));
  cluster_->Invalidate(table.stored.name);
  TAMIS_RETURN_IF_ERROR(CheckName(table.stored.name));
  return table.schema();
}

Status HBaseClusterAdmin::CheckJar(bool strict) {
  TAMIS_ASSIGN_OR_RETURN(const Installation installation, AskProcesses());
  const std::vector<std::string> missing = MissingJar(installation, strict);
  if (missing.empty()) return Status::Ok();
  return FailedPrecondition(JoinSentences(missing) + "; tamis doctor looks over all of it");
}

void HBaseClusterAdmin::AttachTable(TableSchema schema, const std::string& foreign_name,
                                    Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done), [this, schema = std::move(schema), foreign_name] {
    auto attached = Attach(schema, foreign_name);
    if (attached.ok()) return attached;
    return Result<TableSchema>(attached.status().WithContext(
        "cannot attach HBase table \"" + foreign_name + "\" as \"" + schema.name + "\""));
  });
}

// Returns the name in the store's namespace; the default namespace is left out.
Result<std::string> HBaseClusterAdmin::OwnName(const std::string& foreign_name) const {
  const size_t colon = foreign_name.find(':');
  if (colon == std::string::npos) return HBaseTableName(cluster_->name_space(), foreign_name);
  const std::string name_space = foreign_name.substr(0, colon);
  if (name_space == cluster_->name_space()) {
    return HBaseTableName(name_space, foreign_name.substr(colon + 1));
  }
  return InvalidArgument("the store is namespace \"" + cluster_->name_space() +
                         "\"; name the other one in --store, hbase://HOST:PORT,.../" + name_space +
                         ", with the options of this one behind it, if it has any (?tls=true...)");
}

// Attaching is one change of the table's description, which the master completes even if the client
// is gone. So after an interruption the same call can be repeated; it waits for the change in
// progress.
Result<TableSchema> HBaseClusterAdmin::Attach(const TableSchema& schema,
                                              const std::string& foreign_name) {
  TAMIS_ASSIGN_OR_RETURN(const std::string hbase_name, OwnName(foreign_name));
  TAMIS_ASSIGN_OR_RETURN(hbase::TableDescription description, DescribeForeign(hbase_name));
  TAMIS_ASSIGN_OR_RETURN(const auto before, ReadIndexedTable(description));
  const bool is_defined = !schema.columns.empty();
  if (!is_defined && !before) {
    return InvalidArgument(
        "it has no definition of its own: say how its rows stand there with --key and --column");
  }
  if (is_defined && !schema.cells) {
    return InvalidArgument(
        "no cell of it is named: give --column NAME=FAMILY:QUALIFIER:TYPE, or "
        "--marker FAMILY:QUALIFIER for a cell that all of its rows have");
  }
  if (before) return AttachAgain(*before, schema);
  TAMIS_RETURN_IF_ERROR(CheckJar(/*strict=*/true));
  const auto taken = cluster_->Find(schema.name);
  if (taken.ok()) return TakenBy(*taken);
  if (taken.status().code() != StatusCode::kNotFound) return taken.status();
  std::vector<std::string> obstacles = ObstaclesToAttaching(description, schema);
  TAMIS_ASSIGN_OR_RETURN(const hbase::TableState state, client_->StateOfTable(hbase_name));
  if (state != hbase::TableState::kEnabled) {
    obstacles.push_back("it is disabled; in HBase's shell: enable '" + hbase_name + "'");
  }
  if (!obstacles.empty()) return FailedPrecondition(JoinSentences(obstacles));
  TAMIS_RETURN_IF_ERROR(LookAtRows(hbase_name, schema));

  TAMIS_ASSIGN_OR_RETURN(TableSchema stored, FirstVersion(schema));
  stored = WithIndexesFrom(std::move(stored), 1 + static_cast<uint32_t>(SeedFromSystem() >> 34));
  description = WithOrigin(DescribeIndexed(std::move(description), stored), TableOrigin::kAttached);
  IndexedTable table{.description = std::move(description), .stored = std::move(stored)};
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(table.description));
  cluster_->Invalidate(schema.name);
  TAMIS_RETURN_IF_ERROR(CheckName(schema.name));
  return table.schema();
}

Result<hbase::TableDescription> HBaseClusterAdmin::DescribeForeign(const std::string& hbase_name) {
  auto described = client_->Table(hbase_name);
  if (described.status().code() != StatusCode::kNotFound) return described;
  const std::string full_name = FullTableName(hbase_name);
  std::string elsewhere;
  // HBase does not show the tables of all namespaces to every user.
  if (const auto all = client_->Tables(); all.ok()) {
    const std::string qualifier = full_name.substr(full_name.find(':'));
    for (const hbase::TableDescription& other : *all) {
      const std::string its = FullTableName(other.name);
      if (!its.ends_with(qualifier)) continue;
      elsewhere += "; there is \"" + its + "\", which is attached in the store " +
                   "hbase://HOST:PORT,.../" + its.substr(0, its.find(':'));
    }
  }
  return NotFound("HBase has no table \"" + full_name + "\"" +
                  (elsewhere.empty() ? "; its shell lists those that there are" : elsewhere));
}

Result<TableSchema> HBaseClusterAdmin::AttachAgain(const IndexedTable& before,
                                                   const TableSchema& wanted) {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, cluster_->Names());
  const bool is_named = names.StandingOf(before.full_name()) == TableNames::Standing::kNamed;
  if (is_named && before.stored.name != wanted.name) {
    return AlreadyExists("it is attached already, as \"" + before.stored.name +
                         "\"; tamis table detach " + before.stored.name + " ends that");
  }
  const auto taken = names.Find(wanted.name);
  if (taken.ok() && taken->full_name() != before.full_name()) return TakenBy(*taken);
  IndexedTable after = before;
  if (after.stored.name != wanted.name) {
    after.stored.name = wanted.name;
    ++after.stored.version;
  }
  if (!wanted.columns.empty()) TAMIS_RETURN_IF_ERROR(CheckSameDefinition(after.stored, wanted));
  TAMIS_RETURN_IF_ERROR(CheckJar(/*strict=*/true));
  after.description = DescribeIndexed(std::move(after.description), after.stored);
  if (!is_named) {
    after.description = WithOrigin(std::move(after.description), TableOrigin::kAttached);
  }
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(after.description));
  cluster_->Invalidate(wanted.name);
  // The master may have assigned a later version, and another table may have got the name.
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable now, cluster_->Find(wanted.name));
  return now.schema();
}

Status HBaseClusterAdmin::CheckName(const std::string& name) {
  TAMIS_ASSIGN_OR_RETURN(const TableNames names, cluster_->Names());
  return names.Find(name).status();
}

Status HBaseClusterAdmin::LookAtRows(const std::string& hbase_name, const TableSchema& schema) {
  RowSample sample(schema);
  const auto stream = client_->Scan(hbase_name, {.limit = kRowsLookedAt});
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const auto rows, stream->Next());
    if (rows.empty()) break;
    for (const hbase::Row& row : rows) sample.Add(row);
  }
  const std::vector<std::string> faults = sample.Faults();
  return faults.empty() ? Status::Ok() : InvalidArgument(JoinSentences(faults));
}

void HBaseClusterAdmin::DetachTable(const std::string& table, DoneCallback done) {
  DoStatus(std::move(done), [this, table] {
    return Detach(table).WithContext("cannot detach table \"" + table + "\"");
  });
}

Status HBaseClusterAdmin::Detach(const std::string& name) {
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable table, cluster_->Find(name));
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(DescribePlain(table.description)));
  cluster_->Invalidate(name);
  return Status::Ok();
}

void HBaseClusterAdmin::DetachForeignTable(const std::string& foreign_name, DoneCallback done) {
  DoStatus(std::move(done), [this, foreign_name] {
    return DetachForeign(foreign_name)
        .WithContext("cannot detach HBase table \"" + foreign_name + "\"");
  });
}

// Also detaches a table whose schema cannot be read, or whose schema attribute was removed while
// other attributes were left.
Status HBaseClusterAdmin::DetachForeign(const std::string& foreign_name) {
  TAMIS_ASSIGN_OR_RETURN(const std::string hbase_name, OwnName(foreign_name));
  TAMIS_ASSIGN_OR_RETURN(const hbase::TableDescription description, DescribeForeign(hbase_name));
  if (!HasTraces(description)) return FailedPrecondition("it is not attached");
  TAMIS_RETURN_IF_ERROR(client_->ModifyTable(DescribePlain(description)));
  const auto table = ReadIndexedTable(description);
  if (table.ok() && table->has_value()) cluster_->Invalidate((*table)->stored.name);
  return Status::Ok();
}

void HBaseClusterAdmin::ListUnnamedTables(Callback<std::vector<std::string>> done) {
  Do<std::vector<std::string>>(std::move(done), [this]() -> Result<std::vector<std::string>> {
    TAMIS_ASSIGN_OR_RETURN(const TableNames names, cluster_->Names());
    std::vector<std::string> texts;
    for (const TableNames::Unnamed& one : names.ListUnnamed()) {
      texts.push_back("HBase table \"" + one.table.full_name() + "\": " + one.text);
    }
    return texts;
  });
}

void HBaseClusterAdmin::DropTable(const std::string& table, DropOptions options,
                                  DoneCallback done) {
  DoStatus(std::move(done), [this, table, options] {
    return Drop(table, options).WithContext("cannot drop table \"" + table + "\"");
  });
}

Status HBaseClusterAdmin::Drop(const std::string& name, DropOptions options) {
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable table, cluster_->Find(name));
  if (table.origin() != TableOrigin::kCreated && !options.delete_attached) {
    return FailedPrecondition(
        "it is HBase table \"" + table.full_name() +
        "\", which was attached, and its rows are others'; tamis table detach " + name +
        " leaves them as they are, tamis table drop " + name +
        " --delete-hbase-table deletes the HBase table with all of its rows");
  }
  Status disabled = client_->DisableTable(table.description.name);
  // The table may be disabled already, by a call that was interrupted before the deletion.
  if (!disabled.ok() && disabled.code() != StatusCode::kFailedPrecondition) return disabled;
  TAMIS_RETURN_IF_ERROR(client_->DeleteTable(table.description.name));
  cluster_->Invalidate(name);
  return Status::Ok();
}

// The master refuses a schema that does not follow the current one; this means that a concurrent
// change came first.
Result<TableSchema> HBaseClusterAdmin::Change(
    const std::string& name, const std::function<Result<TableSchema>(TableSchema)>& change) {
  for (int i = 0;; ++i) {
    TAMIS_ASSIGN_OR_RETURN(IndexedTable table, cluster_->Find(name));
    TAMIS_ASSIGN_OR_RETURN(table.stored, change(table.stored));
    const hbase::TableDescription changed = DescribeIndexed(table.description, table.stored);
    const Status modified = client_->ModifyTable(changed);
    if (modified.ok()) {
      cluster_->Invalidate(name);
      return table.schema();
    }
    const auto now = cluster_->Find(name);
    const bool overtaken = modified.code() == StatusCode::kInvalidArgument && now.ok() &&
                           now->stored.version >= table.stored.version;
    if (!overtaken || i == kTriesOfChange) {
      return modified.WithContext("cannot change the schema of table \"" + name + "\"");
    }
  }
}

void HBaseClusterAdmin::AddColumn(const std::string& table, Column column,
                                  Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done), [this, table, column = std::move(column)] {
    return Change(table, [&](TableSchema old) {
      Column placed = InCell(old, column);
      return WithColumn(std::move(old), std::move(placed));
    });
  });
}

void HBaseClusterAdmin::CreateIndex(const std::string& table, IndexSpec index,
                                    Callback<TableSchema> done) {
  if (index.seed == 0) index.seed = NewSeed();
  Do<TableSchema>(std::move(done), [this, table, index = std::move(index)] {
    return Change(table, [&](TableSchema old) { return WithIndex(std::move(old), index); });
  });
}

void HBaseClusterAdmin::DropIndex(const std::string& table, const std::string& index,
                                  Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done), [this, table, index] {
    return Change(table, [&](TableSchema old) { return WithoutIndex(std::move(old), index); });
  });
}

void HBaseClusterAdmin::GetIndexProgress(const std::string& table, const std::string& index,
                                         Callback<IndexProgress> done) {
  Do<IndexProgress>(std::move(done), [this, table, index] { return Progress(table, index); });
}

Result<IndexProgress> HBaseClusterAdmin::Progress(const std::string& name,
                                                  const std::string& index) {
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable table, cluster_->Find(name));
  const IndexSpec* spec = table.stored.FindIndex(index);
  if (spec == nullptr) return NotFound("table \"" + name + "\" has no index \"" + index + "\"");
  TAMIS_ASSIGN_OR_RETURN(const auto regions, RegionsOf(table.description.name));
  std::map<std::string, std::set<uint64_t>> regions_at;  // by server
  for (const hbase::RegionPtr& region : regions) {
    TAMIS_ASSIGN_OR_RETURN(const RegionId id, RegionIdOf(region->encoded));
    if (region->server.address.host.empty()) continue;
    regions_at[region->server.address.ToString()].insert(id.number());
  }
  std::vector<std::string> servers;
  for (const auto& [server, ids] : regions_at) servers.push_back(server);
  IndexProgress progress{.regions = regions.size()};
  const auto replies = AskStatus(servers, table.schema().id);
  for (size_t i = 0; i < servers.size(); ++i) {
    if (!replies[i].ok()) continue;  // its regions count as incomplete
    for (const pb::RegionStatus& region : replies[i]->regions()) {
      // Two servers may report a region that moves meanwhile; count only the one in hbase:meta.
      if (!regions_at[servers[i]].contains(region.region_id())) continue;
      for (const pb::IndexStatus& one : region.indexes()) {
        if (one.index_id() != spec->id || !one.published()) continue;
        ++progress.complete;
        progress.entries += one.entries();
      }
    }
  }
  return progress;
}

// ---- Regions

Result<std::vector<hbase::RegionPtr>> HBaseClusterAdmin::RegionsOf(const std::string& hbase_table) {
  TAMIS_ASSIGN_OR_RETURN(auto regions, client_->Regions(hbase_table));
  cluster_->known_regions().Learn(hbase_table, {}, regions);
  return regions;
}

Result<hbase::Region> HBaseClusterAdmin::FindRegion(RegionId id) {
  const auto look = [&](const std::string& hbase_table) -> Result<hbase::RegionPtr> {
    TAMIS_ASSIGN_OR_RETURN(const auto regions, RegionsOf(hbase_table));
    for (const hbase::RegionPtr& region : regions) {
      const auto its = RegionIdOf(region->encoded);
      if (its.ok() && *its == id) return region;
    }
    return hbase::RegionPtr();
  };
  // Look in the table that last had the region, then in all tables.
  if (const auto known = cluster_->known_regions().Find(id)) {
    const auto region = look(known->table);
    if (region.ok() && *region) return **region;
  }
  TAMIS_ASSIGN_OR_RETURN(const auto tables, cluster_->Tables());
  for (const IndexedTable& table : tables) {
    const auto region = look(table.description.name);
    if (region.status().code() == StatusCode::kNotFound) continue;  // dropped meanwhile
    if (!region.ok()) return region.status();
    if (*region) return **region;
  }
  return NotFound("there is none");
}

Status HBaseClusterAdmin::RetryWhileBusy(const std::function<Status()>& work) {
  const Time end = executor_->Now() + options_.patience;
  Backoff pauses(std::chrono::milliseconds(100), std::chrono::seconds(2));
  while (true) {
    Status status = work();
    if (!IsNotYet(status) || executor_->Now() >= end) return status;
    Sleep(&workers_, pauses.Next());
  }
}

void HBaseClusterAdmin::SplitRegion(RegionId region, std::string key, DoneCallback done) {
  DoStatus(std::move(done), [this, region, key = std::move(key)] { return Split(region, key); });
}

Status HBaseClusterAdmin::Split(RegionId id, const std::string& key) {
  const Status split = RetryWhileBusy([&]() -> Status {
    TAMIS_ASSIGN_OR_RETURN(const hbase::Region region, FindRegion(id));
    return AfterCompaction({region}, SplitNow(region, key));
  });
  return split.WithContext("cannot split region " + id.ToString());
}

Status HBaseClusterAdmin::AfterCompaction(const std::vector<hbase::Region>& regions, Status refused) {
  if (IsNotYet(refused)) {
    for (const hbase::Region& region : regions) (void)client_->CompactRegion(region, false);
  }
  return refused;
}

// The master refuses a split with the same exception for every reason, so the region's server is
// asked first.
Status HBaseClusterAdmin::SplitNow(const hbase::Region& region, std::string key) {
  const auto state = client_->StateOfSplit(region);
  if (state.status().code() == StatusCode::kDeadlineExceeded) {
    return Unavailable(state.status().message());  // nothing was begun: ask again
  }
  TAMIS_RETURN_IF_ERROR(state.status());
  if (!state->splittable) {
    return Unavailable("HBase has not compacted it since the last split or merge");
  }
  if (key.empty() && state->key.empty()) {
    TAMIS_ASSIGN_OR_RETURN(key, MiddleOf(region));
  }
  return client_->SplitRegion(region, key);
}

// Reads the keys to find the middle one. HBase found no split point on disk, so there are few keys.
Result<std::string> HBaseClusterAdmin::MiddleOf(const hbase::Region& region) {
  hbase::Scan scan;
  scan.start_row = region.start;
  scan.stop_row = region.end;
  scan.filter = hbase::Filter::All({hbase::Filter::FirstKeyOnly(), hbase::Filter::KeysOnly()});
  scan.cache_blocks = false;
  const auto stream = client_->Scan(region.table, std::move(scan));
  std::vector<std::string> keys;
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const auto rows, stream->Next());
    if (rows.empty()) break;
    for (const hbase::Row& row : rows) keys.emplace_back(row.key());
  }
  const size_t middle = keys.size() / 2;
  if (keys.empty() || keys[middle] <= region.start) {
    return FailedPrecondition("it has too few rows to be split");
  }
  return keys[middle];
}

void HBaseClusterAdmin::MergeRegion(RegionId region, DoneCallback done) {
  DoStatus(std::move(done), [this, region] { return Merge(region); });
}

Status HBaseClusterAdmin::Merge(RegionId id) {
  const Status merged = RetryWhileBusy([&]() -> Status {
    TAMIS_ASSIGN_OR_RETURN(const hbase::Region left, FindRegion(id));
    if (left.end.empty()) return FailedPrecondition("it is the last one of its table");
    TAMIS_ASSIGN_OR_RETURN(const auto regions, RegionsOf(left.table));
    const auto right = std::ranges::find(regions, left.end, [](const auto& r) { return r->start; });
    if (right == regions.end()) return Unavailable("hbase:meta has no region behind it now");
    const std::vector<hbase::Region> both = {left, **right};
    return AfterCompaction(both, client_->MergeRegions(both));
  });
  return merged.WithContext("cannot merge region " + id.ToString());
}

void HBaseClusterAdmin::MoveRegion(RegionId region, const std::string& server, DoneCallback done) {
  DoStatus(std::move(done), [this, region, server] { return Move(region, server); });
}

// If the target does not open the region at once, HBase opens it on another server and reports
// success. In that case the region is moved again.
Status HBaseClusterAdmin::Move(RegionId id, const std::string& server) {
  const Status moved = RetryWhileBusy([&]() -> Status {
    TAMIS_ASSIGN_OR_RETURN(const hbase::Region region, FindRegion(id));
    TAMIS_ASSIGN_OR_RETURN(const hbase::ClusterState state,
                           client_->Cluster(hbase::ClusterDetail::kServers));
    const auto target = std::ranges::find(
        state.servers, server, [](const auto& one) { return one.name.address.ToString(); });
    if (target == state.servers.end()) {
      return NotFound("there is no live region server \"" + server + "\"");
    }
    if (region.server == target->name) return Status::Ok();
    TAMIS_RETURN_IF_ERROR(client_->MoveRegion(region, target->name));
    TAMIS_ASSIGN_OR_RETURN(const hbase::Region now, FindRegion(id));
    if (now.server == target->name) return Status::Ok();
    return Unavailable("HBase leaves it at " + now.server.ToString());
  });
  return moved.WithContext("cannot move region " + id.ToString());
}

// ---- Jobs

void HBaseClusterAdmin::StartJob(JobSpec spec, Callback<uint64_t> done) {
  Do<uint64_t>(std::move(done), [this, spec = std::move(spec)]() -> Result<uint64_t> {
    const std::string what = "cannot " + spec.ToString();
    std::optional<IndexedTable> table;
    if (spec.kind == JobSpec::Kind::kCheck || spec.kind == JobSpec::Kind::kRebuildIndex) {
      auto found = cluster_->Find(spec.table);
      if (!found.ok()) return found.status().WithContext(what);
      table = *std::move(found);
      if (!spec.index.empty() && table->stored.FindIndex(spec.index) == nullptr) {
        return NotFound(what + ": table \"" + spec.table + "\" has no index \"" + spec.index +
                        "\"");
      }
    }
    const uint64_t job = jobs_.Add(spec, 1);
    job_workers_.Post([this, job, spec, table = std::move(table)] {
      const Status status = RunJob(job, spec, table);
      jobs_.End(job, status.WithContext("cannot " + spec.ToString()));
    });
    return job;
  });
}

Status HBaseClusterAdmin::RunJob(uint64_t job, const JobSpec& spec,
                                 const std::optional<IndexedTable>& table) {
  switch (spec.kind) {
    case JobSpec::Kind::kCheck:
    case JobSpec::Kind::kRebuildIndex:
      break;
    case JobSpec::Kind::kBalance: {
      TAMIS_ASSIGN_OR_RETURN(const uint64_t moved, client_->Balance());
      jobs_.Update(job, [&](JobInfo* info) { info->moved = moved; });
      return Status::Ok();
    }
    case JobSpec::Kind::kCompact:
      return Compact(job);
  }
  TableJob::Options options;
  if (spec.kind == JobSpec::Kind::kRebuildIndex) {
    options.kind = pb::StartJobRequest::REBUILD;
    if (!spec.index.empty()) options.index_id = table->stored.FindIndex(spec.index)->id;
  }
  const auto soon = [this] {
    return Wait{.deadline = executor_->Now() + kJobAnswerTime, .cancelled = &closed_};
  };
  TableJob parts({.list =
                      [&] {
                        return AwaitResult<std::vector<RegionInfo>>(
                            executor_, soon(), [&](auto done) {
                              cluster_->ListRegions(table->stored.name, {}, std::move(done));
                            });
                      },
                  .start =
                      [&](const std::string& server, const pb::StartJobRequest& request) {
                        return AwaitResult<pb::StartJobReply>(executor_, soon(), [&](auto done) {
                          cluster_->Stub(server)->StartJob(request, std::move(done));
                        });
                      },
                  .get =
                      [&](const std::string& server, const pb::GetJobRequest& request,
                          const std::vector<RegionId>& regions) {
                        return AwaitResult<pb::GetJobReply>(executor_, soon(), [&](auto done) {
                          cluster_->Stub(server)->GetJob(request, regions, std::move(done));
                        });
                      },
                  .now = [this] { return executor_->Now(); },
                  .pause = [this](Duration pause) { return Pause(pause); }},
                 table->schema().id, options);
  TAMIS_RETURN_IF_ERROR(
      parts.Run([&](uint64_t done, uint64_t total) { SetProgress(job, done, total); }));
  if (spec.kind == JobSpec::Kind::kCheck) {
    jobs_.Update(job, [&](JobInfo* info) { info->check = parts.report(); });
  }
  return Status::Ok();
}

Result<std::vector<hbase::RegionPtr>> HBaseClusterAdmin::RegionsOfAll() {
  TAMIS_ASSIGN_OR_RETURN(const auto tables, cluster_->Tables());
  std::vector<hbase::RegionPtr> regions;
  for (const IndexedTable& table : tables) {
    const auto its = RegionsOf(table.description.name);
    if (its.status().code() == StatusCode::kNotFound) continue;  // dropped meanwhile
    TAMIS_RETURN_IF_ERROR(its.status());
    regions.insert(regions.end(), its->begin(), its->end());
  }
  return regions;
}

Status HBaseClusterAdmin::Compact(uint64_t job) {
  CompactionJob all(
      {.list = [this] { return RegionsOfAll(); },
       .begin = [this](const hbase::Region& region) -> Status {
         TAMIS_RETURN_IF_ERROR(client_->FlushRegion(region));
         return client_->CompactRegion(region, true);
       },
       .is_compacting = [this](const auto& region) { return client_->IsCompacting(region); },
       .now = [this] { return executor_->Now(); },
       .pause = [this](Duration pause) { return Pause(pause); }},
      options_.patience);
  return all.Run([&](uint64_t done, uint64_t total) { SetProgress(job, done, total); });
}

Status HBaseClusterAdmin::Pause(Duration pause) {
  if (closed_) return Cancelled("the cluster was closed");
  Sleep(executor_, pause);
  return Status::Ok();
}

void HBaseClusterAdmin::SetProgress(uint64_t job, uint64_t done, uint64_t total) {
  jobs_.Update(job, [&](JobInfo* info) {
    info->done = done;
    info->total = total;
  });
}

void HBaseClusterAdmin::GetJob(uint64_t job, Callback<JobInfo> done) { done(jobs_.Find(job)); }

}  // namespace tamis
