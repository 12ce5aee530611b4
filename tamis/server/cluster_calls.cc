#include "tamis/server/cluster_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tamis/remote/messages.h"
#include "tamis/server/problem.h"

namespace tamis::server {
namespace {

constexpr Duration kRoutedStep = std::chrono::milliseconds(10);
constexpr Duration kLongestWait = std::chrono::seconds(1);  // for filters; the client asks again

void Send(const StoreCallPtr& to, const pb::ClusterAnswer& answer) {
  to->Answer(Response{.content_type = std::string(kRemoteContentType),
                      .body = answer.SerializeAsString()});
}

// The callback of a call whose result `fill` puts into the answer.
template <class T, class Fill>
Callback<T> Filled(StoreCallPtr to, Fill fill) {
  return [to = std::move(to), fill](Result<T> result) {
    if (!result.ok()) return to->Answer(result.status());
    pb::ClusterAnswer answer;
    fill(*result, &answer);
    Send(to, answer);
  };
}

DoneCallback Done(StoreCallPtr to) {
  return [to = std::move(to)](const Status& status) {
    if (!status.ok()) return to->Answer(status);
    Send(to, {});
  };
}

Callback<TableSchema> SchemaTo(StoreCallPtr to) {
  return Filled<TableSchema>(std::move(to),
                             [](const TableSchema& schema, pb::ClusterAnswer* answer) {
                               answer->add_schemas(SerializeSchema(schema));
                             });
}

void AnswerKnowledge(const Engine& engine, const StoreCallPtr& to) {
  const Engine::Knowledge known = engine.knowledge();
  pb::ClusterAnswer answer;
  pb::ClusterAnswer::Knowledge* out = answer.mutable_knowledge();
  out->set_servers(known.servers);
  out->set_regions(known.regions);
  out->set_indexes_missing(known.indexes_missing);
  out->set_indexes_left_out(known.indexes_left_out);
  out->set_filters_coarse(known.filters_coarse);
  out->set_filter_bytes(known.filter_bytes);
  out->set_max_filter_bytes(known.max_filter_bytes);
  out->set_servers_without_lease(known.servers_without_lease);
  Send(to, answer);
}

// Answers once the filters of the table are here, or at the deadline.
void LookWhetherRouted(Engine* engine, const SchemaPtr& schema, Time deadline,
                       const StoreCallPtr& to) {
  std::optional<bool> routed;
  // The engine is there at least until the call has ended.
  to->WhileOpen([&] {
    Executor& executor = engine->executor();
    const bool is_routed = engine->WaitUntilRouted(*schema, Duration(0));
    if (is_routed || executor.Now() >= deadline) routed = is_routed;
    if (routed) return;
    executor.PostAfter(kRoutedStep, [=] { LookWhetherRouted(engine, schema, deadline, to); });
  });
  if (!routed) return;
  pb::ClusterAnswer answer;
  answer.set_routed(*routed);
  Send(to, answer);
}

void AwaitRouted(Engine* engine, const pb::ClusterCall::Routed& call, const StoreCallPtr& to) {
  const auto schema = engine->Table(call.table());
  if (!schema.ok()) return to->Answer(schema.status());
  const Duration wait = std::min(kLongestWait, SentDuration(call.timeout_ns()));
  LookWhetherRouted(engine, *schema, engine->executor().Now() + wait, to);
}

void AnswerCapabilities(const ClusterAdmin& admin, const StoreCallPtr& to) {
  pb::ClusterAnswer answer;
  for (const Capability capability :
       {Capability::kKillServer, Capability::kPauseServer, Capability::kResumeServer,
        Capability::kBalance, Capability::kCompact}) {
    if (admin.Can(capability)) answer.add_capabilities(static_cast<uint32_t>(capability));
  }
  Send(to, answer);
}

void AnswerStatus(ClusterAdmin* admin, bool may_administer, const StoreCallPtr& to) {
  admin->GetStatus(Filled<ClusterStatus>(
      to, [may_administer](const ClusterStatus& status, pb::ClusterAnswer* answer) {
        for (const ServerStatus& server : status.servers) {
          ToMessage(may_administer ? server : WithoutIdentities(server), answer->add_servers());
        }
        answer->set_pending_work(status.pending_work);
      }));
}

// A call that changes nothing; false: it is another one.
bool Look(OpenedStore* store, bool may_administer, const pb::ClusterCall& call,
          const StoreCallPtr& to) {
  Engine& engine = store->engine();
  switch (call.call_case()) {
    case pb::ClusterCall::kListServers:
      engine.cluster().ListServers(Filled<std::vector<ServerInfo>>(
          to, [](const std::vector<ServerInfo>& servers, pb::ClusterAnswer* answer) {
            for (const ServerInfo& server : servers) {
              ToMessage(ServerStatus{.info = server}, answer->add_servers());
            }
          }));
      return true;
    case pb::ClusterCall::kListTables:
      engine.cluster().ListTables(Filled<std::vector<TableSchema>>(
          to, [](const std::vector<TableSchema>& tables, pb::ClusterAnswer* answer) {
            for (const TableSchema& table : tables) answer->add_schemas(SerializeSchema(table));
          }));
      return true;
    case pb::ClusterCall::kGetTable:
      engine.cluster().GetTable(call.get_table(), SchemaTo(to));
      return true;
    case pb::ClusterCall::kListRegions: {
      std::vector<KeyRange> stale;
      for (const auto& span : call.list_regions().stale()) {
        stale.push_back({span.start(), span.end()});
      }
      engine.cluster().ListRegions(
          call.list_regions().table(), std::move(stale),
          Filled<std::vector<RegionInfo>>(
              to, [](const std::vector<RegionInfo>& regions, pb::ClusterAnswer* answer) {
                for (const RegionInfo& region : regions) ToMessage(region, answer->add_regions());
              }));
      return true;
    }
    case pb::ClusterCall::kIndexProgress:
      store->admin().GetIndexProgress(
          call.index_progress().table(), call.index_progress().index(),
          Filled<IndexProgress>(to, [](const IndexProgress& progress, pb::ClusterAnswer* answer) {
            ToMessage(progress, answer->mutable_progress());
          }));
      return true;
    case pb::ClusterCall::kStatus:
      AnswerStatus(&store->admin(), may_administer, to);
      return true;
    case pb::ClusterCall::kGetJob:
      store->admin().GetJob(call.get_job(),
                            Filled<JobInfo>(to, [](const JobInfo& job, pb::ClusterAnswer* answer) {
                              ToMessage(job, answer->mutable_job());
                            }));
      return true;
    case pb::ClusterCall::kKnowledge:
      AnswerKnowledge(engine, to);
      return true;
    case pb::ClusterCall::kAwaitRouted:
      AwaitRouted(&engine, call.await_routed(), to);
      return true;
    case pb::ClusterCall::kCapabilities:
      AnswerCapabilities(store->admin(), to);
      return true;
    default:
      return false;
  }
}

// The table of the request may have been dropped and created again under its name.
Status CheckTable(const TableSchema& asked, const TableSchema& there) {
  if (asked.id == there.id) return Status::Ok();
  return NotFound("table \"" + there.name +
                  "\" was dropped and created again since it was described");
}

// Calls `change` with a callback for the changed table, if the table is that of `schema`.
void ChangeSchema(OpenedStore* store, const std::string& table, TableSchema schema,
                  const StoreCallPtr& to,
                  std::function<void(const TableSchema&, Callback<TableSchema>)> change) {
  store->engine().cluster().GetTable(
      table, [=, schema = std::move(schema),
              change = std::move(change)](const Result<TableSchema>& there) {
        if (!there.ok()) return to->Answer(there.status());
        if (const Status same = CheckTable(schema, *there); !same.ok()) return to->Answer(same);
        change(schema, [to, schema, answer = SchemaTo(to)](Result<TableSchema> changed) {
          const Status same = changed.ok() ? CheckTable(schema, *changed) : Status::Ok();
          if (same.ok()) return answer(std::move(changed));
          to->Answer(FailedPrecondition(same.message() + "; the new table was changed"));
        });
      });
}

// The call with a schema whose last column or index is to be added.
template <class Add>
void WithSchema(const std::string& bytes, const StoreCallPtr& to, Add add) {
  auto schema = ParseSchema(bytes);
  if (!schema.ok()) return to->Answer(InvalidArgument(schema.status().message()));
  add(*std::move(schema));
}

void WithRegion(uint64_t number, const StoreCallPtr& to,
                const std::function<void(RegionId)>& change) {
  const auto region = RegionId::Of(number);
  if (!region.ok()) return to->Answer(region.status());
  change(*region);
}

void ChangeTable(OpenedStore* store, const pb::ClusterCall& call, const StoreCallPtr& to) {
  ClusterAdmin* const admin = &store->admin();
  switch (call.call_case()) {
    case pb::ClusterCall::kCreateTable:
      return WithSchema(call.create_table(), to, [&](TableSchema schema) {
        admin->CreateTable(std::move(schema), SchemaTo(to));
      });
    case pb::ClusterCall::kDropTable:
      return admin->DropTable(call.drop_table().table(),
                              {.delete_attached = call.drop_table().delete_attached()}, Done(to));
    case pb::ClusterCall::kAddColumn:
      return WithSchema(call.add_column().schema(), to, [&](TableSchema schema) {
        const std::string& table = call.add_column().table();
        ChangeSchema(store, table, std::move(schema), to,
                     [=](const TableSchema& with, Callback<TableSchema> done) {
                       admin->AddColumn(table, with.columns.back(), std::move(done));
                     });
      });
    case pb::ClusterCall::kDropColumn:
      return admin->DropColumn(call.drop_column().table(), call.drop_column().column(),
                               SchemaTo(to));
    case pb::ClusterCall::kCreateIndex:
      return WithSchema(call.create_index().schema(), to, [&](TableSchema schema) {
        if (schema.indexes.empty()) {
          return to->Answer(InvalidArgument("the schema has no index to create"));
        }
        const std::string& table = call.create_index().table();
        ChangeSchema(store, table, std::move(schema), to,
                     [=](const TableSchema& with, Callback<TableSchema> done) {
                       admin->CreateIndex(table, with.indexes.back(), std::move(done));
                     });
      });
    case pb::ClusterCall::kDropIndex:
      return admin->DropIndex(call.drop_index().table(), call.drop_index().index(), SchemaTo(to));
    default:
      return to->Answer(InvalidArgument(
          "cannot read the request: its body is no ClusterCall that this version knows"));
  }
}

void ChangeCluster(OpenedStore* store, const pb::ClusterCall& call, const StoreCallPtr& to) {
  ClusterAdmin* const admin = &store->admin();
  switch (call.call_case()) {
    case pb::ClusterCall::kSplitRegion:
      return WithRegion(call.split_region().region(), to, [&](RegionId region) {
        admin->SplitRegion(region, call.split_region().key(), Done(to));
      });
    case pb::ClusterCall::kMergeRegion:
      return WithRegion(call.merge_region(), to,
                        [&](RegionId region) { admin->MergeRegion(region, Done(to)); });
    case pb::ClusterCall::kMoveRegion:
      return WithRegion(call.move_region().region(), to, [&](RegionId region) {
        admin->MoveRegion(region, call.move_region().server(), Done(to));
      });
    case pb::ClusterCall::kKillServer:
      return admin->KillServer(call.kill_server(), Done(to));
    case pb::ClusterCall::kPauseServer:
      return admin->PauseServer(call.pause_server(), Done(to));
    case pb::ClusterCall::kResumeServer:
      return admin->ResumeServer(call.resume_server(), Done(to));
    case pb::ClusterCall::kStartJob: {
      auto job = FromMessage(call.start_job());
      if (!job.ok()) return to->Answer(job.status());
      return admin->StartJob(*std::move(job),
                             Filled<uint64_t>(to, [](uint64_t number, pb::ClusterAnswer* answer) {
                               answer->set_job_number(number);
                             }));
    }
    default:
      return ChangeTable(store, call, to);
  }
}

}  // namespace

ServerStatus WithoutIdentities(ServerStatus status) {
  for (CoordinatorStatus& coordinator : status.coordinators) {
    coordinator = {.events_behind = coordinator.events_behind,
                   .lease_left = coordinator.lease_left};
  }
  return status;
}

void ClusterCalls::Answer(const StoreCallPtr& call) {
  pb::ClusterCall message;
  if (!message.ParseFromString(call->request().body)) {
    return call->Answer(InvalidArgument("cannot read the request: its body is no ClusterCall"));
  }
  if (!Look(store_, may_administer_, message, call)) {
    if (!may_administer_) {
      return call->Answer(
          Problem(403, FailedPrecondition("this server does not change tables, indexes, regions or "
                                          "servers: it was started without --admin")));
    }
    call->MayChange();
    ChangeCluster(store_, message, call);
  }
  call->AwaitCallback();
}

}  // namespace tamis::server
