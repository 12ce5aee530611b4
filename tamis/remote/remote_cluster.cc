#include "tamis/remote/remote_cluster.h"

#include <utility>

#include "tamis/base/answers.h"
#include "tamis/base/backoff.h"
#include "tamis/cluster/region_server.h"
#include "tamis/remote/messages.h"
#include "tamis/remote/remote_answer.h"

namespace tamis {
namespace {

class NoRegionServer final : public RegionServer {
 public:
  void Mutate(const pb::MutateRequest&, Callback<pb::MutateReply> done) override { done(Why()); }
  void Search(const pb::SearchRequest&, Callback<pb::SearchReply> done) override { done(Why()); }
  void Poll(const pb::PollRequest&, Callback<pb::PollReply> done) override { done(Why()); }

 private:
  static Status Why() {
    return FailedPrecondition("only the server of this store sends requests to its region servers");
  }
};

bool Changes(const pb::ClusterCall& call) {
  return call.call_case() >= pb::ClusterCall::kCreateTable;
}

Result<TableSchema> SchemaOf(const pb::ClusterAnswer& answer) {
  if (answer.schemas_size() == 1) return ParseSchema(answer.schemas(0));
  return DataLoss("the server did not send the table");
}

}  // namespace

// The attempts at one call. They do not own the client: its own thread may destroy them.
class RemoteCluster::Attempts : public std::enable_shared_from_this<Attempts> {
 public:
  // For how long it is tried again after an error that passes: `busy` where the server refused it
  // as busy, `other` otherwise.
  struct Patience {
    Duration busy{};
    Duration other{};
  };

  Attempts(HttpClient* client, Executor* executor, const pb::ClusterCall& call, Patience patience,
           Callback<pb::ClusterAnswer> done)
      : client_(client),
        executor_(executor),
        body_(call.SerializeAsString()),
        changes_(Changes(call)),
        deadline_(executor->Now() + patience.other),
        busy_deadline_(executor->Now() + patience.busy),
        done_(std::move(done)) {}

  void Begin() {
    client_->PostToTheEnd({.path = "/v1/cluster",
                           .content_type = std::string(kRemoteContentType),
                           .body = body_,
                           .repeatable = !changes_,
                           .timeout = changes_ ? Duration(0)
                                               : std::max<Duration>(deadline_ - executor_->Now(),
                                                                    std::chrono::seconds(1))},
                          [self = shared_from_this()](HttpClient::Answer answer) {
                            self->executor_->Post([self, answer = std::move(answer)]() mutable {
                              self->Take(std::move(answer));
                            });
                          });
  }

 private:
  void Take(HttpClient::Answer answer) {
    const Status status = StatusOf(*client_, answer, changes_);
    if (status.ok()) {
      pb::ClusterAnswer message;
      if (message.ParseFromString(answer.body)) return done_(std::move(message));
      return done_(DataLoss("the answer of " + client_->url() + " is no ClusterAnswer"));
    }
    const bool unreached = !answer.failure.ok() && !answer.was_sent;
    const bool is_busy = status.code() == StatusCode::kBusy;
    const bool transient = status.code() == StatusCode::kUnavailable || is_busy;
    const bool again = transient && (!changes_ || unreached);
    const Duration pause = pauses_.Next();
    const Time deadline = is_busy ? busy_deadline_ : deadline_;
    if (!again || executor_->Now() + pause >= deadline) return done_(status);
    executor_->PostAfter(pause, [self = shared_from_this()] { self->Begin(); });
  }

  HttpClient* const client_;
  Executor* const executor_;
  const std::string body_;
  const bool changes_;
  const Time deadline_;
  const Time busy_deadline_;
  const Callback<pb::ClusterAnswer> done_;
  Backoff pauses_{std::chrono::milliseconds(20), std::chrono::seconds(1)};
};

Result<std::shared_ptr<RemoteCluster>> RemoteCluster::Open(std::shared_ptr<HttpClient> client,
                                                           Executor* executor, Duration timeout) {
  std::shared_ptr<RemoteCluster> cluster(new RemoteCluster(std::move(client), executor, timeout));
  pb::ClusterCall call;
  call.mutable_capabilities();
  // A server that is busy is the right one, and many programs may start at once. One that does not
  // answer may be a mistake in the name, so there is one attempt, of a second.
  const Attempts::Patience patience{.busy = timeout};
  TAMIS_ASSIGN_OR_RETURN(const pb::ClusterAnswer answer,
                         AwaitResult<pb::ClusterAnswer>(
                             executor, {.deadline = executor->Now() + timeout}, [&](auto done) {
                               std::make_shared<Attempts>(cluster->client_.get(), executor, call,
                                                          patience, std::move(done))
                                   ->Begin();
                             }));
  for (const uint32_t number : answer.capabilities()) {
    cluster->capabilities_.insert(static_cast<Capability>(number));
  }
  return cluster;
}

void RemoteCluster::Call(const pb::ClusterCall& call, Callback<pb::ClusterAnswer> done) {
  const Attempts::Patience patience{.busy = timeout_, .other = timeout_};
  std::make_shared<Attempts>(client_.get(), executor_, call, patience, std::move(done))->Begin();
}

Result<pb::ClusterAnswer> RemoteCluster::Ask(const pb::ClusterCall& call) {
  return AwaitResult<pb::ClusterAnswer>(executor_, {.deadline = executor_->Now() + timeout_},
                                        [&](auto done) { Call(call, std::move(done)); });
}

// `read` makes a Result<T> of the answer.
template <class T, class Read>
void RemoteCluster::CallFor(const pb::ClusterCall& call, Callback<T> done, Read read) {
  Call(call, [done = std::move(done), read](const Result<pb::ClusterAnswer>& answer) {
    done(answer.ok() ? Result<T>(read(*answer)) : Result<T>(answer.status()));
  });
}

void RemoteCluster::CallForSchema(const pb::ClusterCall& call, Callback<TableSchema> done) {
  CallFor<TableSchema>(call, std::move(done), SchemaOf);
}

void RemoteCluster::Do(const pb::ClusterCall& call, DoneCallback done) {
  Call(call, [done = std::move(done)](const Result<pb::ClusterAnswer>& answer) {
    done(answer.status());
  });
}

// ---- Cluster

std::shared_ptr<RegionServer> RemoteCluster::Server(const std::string& /*name*/) {
  return std::make_shared<NoRegionServer>();
}

void RemoteCluster::ListServers(Callback<std::vector<ServerInfo>> done) {
  pb::ClusterCall call;
  call.mutable_list_servers();
  CallFor<std::vector<ServerInfo>>(call, std::move(done), [](const pb::ClusterAnswer& answer) {
    std::vector<ServerInfo> servers;
    for (const pb::ServerState& server : answer.servers()) {
      servers.push_back(FromMessage(server).info);
    }
    return servers;
  });
}

void RemoteCluster::ListRegions(const std::string& table, std::vector<KeyRange> stale,
                                Callback<std::vector<RegionInfo>> done) {
  pb::ClusterCall call;
  call.mutable_list_regions()->set_table(table);
  for (const KeyRange& range : stale) {
    pb::ClusterCall::Span* span = call.mutable_list_regions()->add_stale();
    span->set_start(range.start);
    span->set_end(range.end);
  }
  using Regions = std::vector<RegionInfo>;
  CallFor<Regions>(call, std::move(done), [](const pb::ClusterAnswer& answer) -> Result<Regions> {
    Regions regions;
    for (const pb::RegionState& region : answer.regions()) {
      TAMIS_ASSIGN_OR_RETURN(RegionInfo info, FromMessage(region));
      regions.push_back(std::move(info));
    }
    return regions;
  });
}

void RemoteCluster::ListTables(Callback<std::vector<TableSchema>> done) {
  pb::ClusterCall call;
  call.mutable_list_tables();
  using Tables = std::vector<TableSchema>;
  CallFor<Tables>(call, std::move(done), [](const pb::ClusterAnswer& answer) -> Result<Tables> {
    Tables tables;
    for (const std::string& bytes : answer.schemas()) {
      TAMIS_ASSIGN_OR_RETURN(TableSchema schema, ParseSchema(bytes));
      tables.push_back(std::move(schema));
    }
    return tables;
  });
}

void RemoteCluster::GetTable(const std::string& name, Callback<TableSchema> done) {
  pb::ClusterCall call;
  call.set_get_table(name);
  CallForSchema(call, std::move(done));
}

// ---- ClusterAdmin

bool RemoteCluster::Can(Capability capability) const { return capabilities_.contains(capability); }

void RemoteCluster::CreateTable(TableSchema schema, Callback<TableSchema> done) {
  pb::ClusterCall call;
  call.set_create_table(SerializeSchema(schema));
  CallForSchema(call, std::move(done));
}

void RemoteCluster::DropTable(const std::string& table, DropOptions options, DoneCallback done) {
  pb::ClusterCall call;
  call.mutable_drop_table()->set_table(table);
  call.mutable_drop_table()->set_delete_attached(options.delete_attached);
  Do(call, std::move(done));
}

template <class Add>
void RemoteCluster::ChangeTable(const std::string& table, Callback<TableSchema> done, Add add) {
  GetTable(table, [this, done = std::move(done), add](Result<TableSchema> schema) {
    if (!schema.ok()) return done(schema.status());
    CallForSchema(add(*std::move(schema)), done);
  });
}

void RemoteCluster::AddColumn(const std::string& table, Column column, Callback<TableSchema> done) {
  ChangeTable(table, std::move(done), [table, column = std::move(column)](TableSchema schema) {
    schema.columns.push_back(column);
    schema.columns.back().id = schema.next_column_id++;
    pb::ClusterCall call;
    call.mutable_add_column()->set_table(table);
    call.mutable_add_column()->set_schema(SerializeSchema(schema));
    return call;
  });
}

void RemoteCluster::DropColumn(const std::string& table, const std::string& column,
                               Callback<TableSchema> done) {
  pb::ClusterCall call;
  call.mutable_drop_column()->set_table(table);
  call.mutable_drop_column()->set_column(column);
  CallForSchema(call, std::move(done));
}

void RemoteCluster::CreateIndex(const std::string& table, IndexSpec index,
                                Callback<TableSchema> done) {
  ChangeTable(table, std::move(done), [table, index = std::move(index)](TableSchema schema) {
    schema.indexes.push_back(index);
    schema.indexes.back().id = schema.next_index_id++;
    pb::ClusterCall call;
    call.mutable_create_index()->set_table(table);
    call.mutable_create_index()->set_schema(SerializeSchema(schema));
    return call;
  });
}

void RemoteCluster::DropIndex(const std::string& table, const std::string& index,
                              Callback<TableSchema> done) {
  pb::ClusterCall call;
  call.mutable_drop_index()->set_table(table);
  call.mutable_drop_index()->set_index(index);
  CallForSchema(call, std::move(done));
}

void RemoteCluster::GetIndexProgress(const std::string& table, const std::string& index,
                                     Callback<IndexProgress> done) {
  pb::ClusterCall call;
  call.mutable_index_progress()->set_table(table);
  call.mutable_index_progress()->set_index(index);
  CallFor<IndexProgress>(call, std::move(done), [](const pb::ClusterAnswer& answer) {
    return FromMessage(answer.progress());
  });
}

void RemoteCluster::SplitRegion(RegionId region, std::string key, DoneCallback done) {
  pb::ClusterCall call;
  call.mutable_split_region()->set_region(region.number());
  call.mutable_split_region()->set_key(std::move(key));
  Do(call, std::move(done));
}

void RemoteCluster::MergeRegion(RegionId region, DoneCallback done) {
  pb::ClusterCall call;
  call.set_merge_region(region.number());
  Do(call, std::move(done));
}

void RemoteCluster::MoveRegion(RegionId region, const std::string& server, DoneCallback done) {
  pb::ClusterCall call;
  call.mutable_move_region()->set_region(region.number());
  call.mutable_move_region()->set_server(server);
  Do(call, std::move(done));
}

void RemoteCluster::KillServer(const std::string& server, DoneCallback done) {
  pb::ClusterCall call;
  call.set_kill_server(server);
  Do(call, std::move(done));
}

void RemoteCluster::PauseServer(const std::string& server, DoneCallback done) {
  pb::ClusterCall call;
  call.set_pause_server(server);
  Do(call, std::move(done));
}

void RemoteCluster::ResumeServer(const std::string& server, DoneCallback done) {
  pb::ClusterCall call;
  call.set_resume_server(server);
  Do(call, std::move(done));
}

void RemoteCluster::GetStatus(Callback<ClusterStatus> done) {
  pb::ClusterCall call;
  call.mutable_status();
  CallFor<ClusterStatus>(call, std::move(done), [](const pb::ClusterAnswer& answer) {
    ClusterStatus status{.servers = {}, .pending_work = answer.pending_work()};
    for (const pb::ServerState& server : answer.servers()) {
      status.servers.push_back(FromMessage(server));
    }
    return status;
  });
}

void RemoteCluster::StartJob(JobSpec spec, Callback<uint64_t> done) {
  pb::ClusterCall call;
  ToMessage(spec, call.mutable_start_job());
  CallFor<uint64_t>(call, std::move(done),
                    [](const pb::ClusterAnswer& answer) { return answer.job_number(); });
}

void RemoteCluster::GetJob(uint64_t job, Callback<JobInfo> done) {
  pb::ClusterCall call;
  call.set_get_job(job);
  CallFor<JobInfo>(call, std::move(done),
                   [](const pb::ClusterAnswer& answer) { return FromMessage(answer.job()); });
}

}  // namespace tamis
