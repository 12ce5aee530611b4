#include "tamis/server/cluster_calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tamis/remote/messages.h"
#include "tamis/server/problem.h"
#include "tamis/server/write_numbers.h"

namespace tamis::server {
namespace {

constexpr Duration kLongestWait = std::chrono::seconds(1);  // for filters; the client asks again

// Where the answer to one call goes.
struct Reply {
  std::shared_ptr<ClusterCalls::Waiting> waiting;
  uint64_t number = 0;

  void Send(Response response) const { waiting->Send(number, std::move(response)); }
};

void Send(const Reply& reply, const pb::ClusterAnswer& answer) {
  reply.Send({.content_type = std::string(kRemoteContentType), .body = answer.SerializeAsString()});
}

// The callback of a call whose result `fill` puts into the answer.
template <class T, class Fill>
Callback<T> Filled(Reply reply, Fill fill) {
  return [reply = std::move(reply), fill](Result<T> result) {
    if (!result.ok()) return reply.Send(Problem(result.status()));
    pb::ClusterAnswer answer;
    fill(*result, &answer);
    Send(reply, answer);
  };
}

DoneCallback Done(Reply reply) {
  return [reply = std::move(reply)](const Status& status) {
    if (!status.ok()) return reply.Send(Problem(status));
    Send(reply, {});
  };
}

Callback<TableSchema> SchemaTo(Reply reply) {
  return Filled<TableSchema>(std::move(reply),
                             [](const TableSchema& schema, pb::ClusterAnswer* answer) {
                               answer->add_schemas(SerializeSchema(schema));
                             });
}

void AnswerKnowledge(const Engine& engine, const Reply& reply) {
  const Engine::Knowledge known = engine.knowledge();
  pb::ClusterAnswer answer;
  pb::ClusterAnswer::Knowledge* out = answer.mutable_knowledge();
  out->set_servers(known.servers);
  out->set_regions(known.regions);
  out->set_indexes_missing(known.indexes_missing);
  out->set_indexes_left_out(known.indexes_left_out);
  out->set_filter_bytes(known.filter_bytes);
  out->set_max_filter_bytes(known.max_filter_bytes);
  out->set_servers_without_lease(known.servers_without_lease);
  Send(reply, answer);
}

void AwaitRouted(Engine* engine, const pb::ClusterCall::Routed& call, const Reply& reply) {
  const auto schema = engine->Table(call.table());
  if (!schema.ok()) return reply.Send(Problem(schema.status()));
  pb::ClusterAnswer answer;
  answer.set_routed(
      engine->WaitUntilRouted(**schema, std::min(kLongestWait, SentDuration(call.timeout_ns()))));
  Send(reply, answer);
}

void AnswerCapabilities(const ClusterAdmin& admin, const Reply& reply) {
  pb::ClusterAnswer answer;
  for (const Capability capability :
       {Capability::kKillServer, Capability::kPauseServer, Capability::kResumeServer,
        Capability::kBalance, Capability::kCompact}) {
    if (admin.Can(capability)) answer.add_capabilities(static_cast<uint32_t>(capability));
  }
  answer.set_process(ProcessNumber());
  Send(reply, answer);
}

// A call that changes nothing; false: it is another one.
bool Look(OpenedStore* store, const pb::ClusterCall& call, const Reply& reply) {
  Engine& engine = store->engine();
  switch (call.call_case()) {
    case pb::ClusterCall::kListServers:
      engine.cluster().ListServers(Filled<std::vector<ServerInfo>>(
          reply, [](const std::vector<ServerInfo>& servers, pb::ClusterAnswer* answer) {
            for (const ServerInfo& server : servers) {
              ToMessage(ServerStatus{.info = server}, answer->add_servers());
            }
          }));
      return true;
    case pb::ClusterCall::kListTables:
      engine.cluster().ListTables(Filled<std::vector<TableSchema>>(
          reply, [](const std::vector<TableSchema>& tables, pb::ClusterAnswer* answer) {
            for (const TableSchema& table : tables) answer->add_schemas(SerializeSchema(table));
          }));
      return true;
    case pb::ClusterCall::kGetTable:
      engine.cluster().GetTable(call.get_table(), SchemaTo(reply));
      return true;
    case pb::ClusterCall::kListRegions: {
      std::vector<KeyRange> stale;
      for (const auto& span : call.list_regions().stale()) {
        stale.push_back({span.start(), span.end()});
      }
      engine.cluster().ListRegions(
          call.list_regions().table(), std::move(stale),
          Filled<std::vector<RegionInfo>>(
              reply, [](const std::vector<RegionInfo>& regions, pb::ClusterAnswer* answer) {
                for (const RegionInfo& region : regions) ToMessage(region, answer->add_regions());
              }));
      return true;
    }
    case pb::ClusterCall::kIndexProgress:
      store->admin().GetIndexProgress(call.index_progress().table(), call.index_progress().index(),
                                      Filled<IndexProgress>(reply, [](const IndexProgress& progress,
                                                                      pb::ClusterAnswer* answer) {
                                        answer->mutable_progress()->set_regions(progress.regions);
                                        answer->mutable_progress()->set_complete(progress.complete);
                                        answer->mutable_progress()->set_entries(progress.entries);
                                      }));
      return true;
    case pb::ClusterCall::kStatus:
      store->admin().GetStatus(
          Filled<ClusterStatus>(reply, [](const ClusterStatus& status, pb::ClusterAnswer* answer) {
            for (const ServerStatus& server : status.servers) {
              ToMessage(server, answer->add_servers());
            }
            answer->set_pending_work(status.pending_work);
          }));
      return true;
    case pb::ClusterCall::kGetJob:
      store->admin().GetJob(
          call.get_job(), Filled<JobInfo>(reply, [](const JobInfo& job, pb::ClusterAnswer* answer) {
            ToMessage(job, answer->mutable_job());
          }));
      return true;
    case pb::ClusterCall::kKnowledge:
      AnswerKnowledge(engine, reply);
      return true;
    case pb::ClusterCall::kAwaitRouted:
      AwaitRouted(&engine, call.await_routed(), reply);
      return true;
    case pb::ClusterCall::kCapabilities:
      AnswerCapabilities(store->admin(), reply);
      return true;
    default:
      return false;
  }
}

// The call with a schema whose last column or index is to be added.
template <class Add>
void WithSchema(const std::string& bytes, const Reply& reply, Add add) {
  auto schema = ParseSchema(bytes);
  if (!schema.ok()) return reply.Send(Problem(InvalidArgument(schema.status().message())));
  add(*std::move(schema));
}

void WithRegion(uint64_t number, const Reply& reply, const std::function<void(RegionId)>& change) {
  const auto region = RegionId::Of(number);
  if (!region.ok()) return reply.Send(Problem(region.status()));
  change(*region);
}

void ChangeTable(ClusterAdmin* admin, const pb::ClusterCall& call, const Reply& reply) {
  switch (call.call_case()) {
    case pb::ClusterCall::kCreateTable:
      return WithSchema(call.create_table(), reply, [&](TableSchema schema) {
        admin->CreateTable(std::move(schema), SchemaTo(reply));
      });
    case pb::ClusterCall::kDropTable:
      return admin->DropTable(call.drop_table().table(),
                              {.delete_attached = call.drop_table().delete_attached()},
                              Done(reply));
    case pb::ClusterCall::kAddColumn:
      return WithSchema(call.add_column().schema(), reply, [&](TableSchema schema) {
        admin->AddColumn(call.add_column().table(), std::move(schema.columns.back()),
                         SchemaTo(reply));
      });
    case pb::ClusterCall::kCreateIndex:
      return WithSchema(call.create_index().schema(), reply, [&](TableSchema schema) {
        if (schema.indexes.empty()) {
          return reply.Send(Problem(InvalidArgument("the schema has no index to create")));
        }
        admin->CreateIndex(call.create_index().table(), std::move(schema.indexes.back()),
                           SchemaTo(reply));
      });
    case pb::ClusterCall::kDropIndex:
      return admin->DropIndex(call.drop_index().table(), call.drop_index().index(),
                              SchemaTo(reply));
    default:
      return reply.Send(Problem(InvalidArgument(
          "cannot read the request: its body is no ClusterCall that this version knows")));
  }
}

void ChangeCluster(ClusterAdmin* admin, const pb::ClusterCall& call, const Reply& reply) {
  switch (call.call_case()) {
    case pb::ClusterCall::kSplitRegion:
      return WithRegion(call.split_region().region(), reply, [&](RegionId region) {
        admin->SplitRegion(region, call.split_region().key(), Done(reply));
      });
    case pb::ClusterCall::kMergeRegion:
      return WithRegion(call.merge_region(), reply,
                        [&](RegionId region) { admin->MergeRegion(region, Done(reply)); });
    case pb::ClusterCall::kMoveRegion:
      return WithRegion(call.move_region().region(), reply, [&](RegionId region) {
        admin->MoveRegion(region, call.move_region().server(), Done(reply));
      });
    case pb::ClusterCall::kKillServer:
      return admin->KillServer(call.kill_server(), Done(reply));
    case pb::ClusterCall::kPauseServer:
      return admin->PauseServer(call.pause_server(), Done(reply));
    case pb::ClusterCall::kResumeServer:
      return admin->ResumeServer(call.resume_server(), Done(reply));
    case pb::ClusterCall::kStartJob: {
      auto job = FromMessage(call.start_job());
      if (!job.ok()) return reply.Send(Problem(job.status()));
      return admin->StartJob(
          *std::move(job), Filled<uint64_t>(reply, [](uint64_t number, pb::ClusterAnswer* answer) {
            answer->set_job_number(number);
          }));
    }
    default:
      return ChangeTable(admin, call, reply);
  }
}

}  // namespace

void ClusterCalls::Answer(const Call& call) {
  pb::ClusterCall message;
  if (!message.ParseFromString(call.request().body)) {
    return call.exchange->Send(
        Problem(InvalidArgument("cannot read the request: its body is no ClusterCall")));
  }
  const Reply reply{.waiting = waiting_, .number = waiting_->Add(call.exchange)};
  if (Look(store_, message, reply)) return;
  if (!may_administer_) {
    return reply.Send(Problem(
        403, FailedPrecondition("this server does not change tables, indexes, regions or servers: "
                                "it was started without --admin")));
  }
  ChangeCluster(&store_->admin(), message, reply);
}

void ClusterCalls::Stop() {
  for (const auto& [number, exchange] : waiting_->TakeAll()) {
    exchange->Send(Problem(DeadlineExceeded(
        "the server stopped before the cluster answered; a change may have been made")));
  }
}

uint64_t ClusterCalls::Waiting::Add(ExchangePtr exchange) {
  const std::lock_guard lock(mutex_);
  exchanges_.emplace(++last_, std::move(exchange));
  return last_;
}

void ClusterCalls::Waiting::Send(uint64_t number, Response response) {
  ExchangePtr exchange;
  {
    const std::lock_guard lock(mutex_);
    const auto found = exchanges_.find(number);
    if (found == exchanges_.end()) return;
    exchange = std::move(found->second);
    exchanges_.erase(found);
  }
  exchange->Send(std::move(response));
}

std::map<uint64_t, ExchangePtr> ClusterCalls::Waiting::TakeAll() {
  const std::lock_guard lock(mutex_);
  return std::exchange(exchanges_, {});
}

}  // namespace tamis::server
