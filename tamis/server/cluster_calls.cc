#include "tamis/server/cluster_calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tamis/remote/messages.h"
#include "tamis/server/problem.h"

namespace tamis::server {
namespace {

constexpr Duration kLongestWait = std::chrono::seconds(1);  // for filters; the client asks again

void Send(const ExchangePtr& exchange, const pb::ClusterAnswer& answer) {
  exchange->Send(
      {.content_type = std::string(kRemoteContentType), .body = answer.SerializeAsString()});
}

// The callback of a call whose result `fill` puts into the answer.
template <class T, class Fill>
Callback<T> Filled(ExchangePtr exchange, Fill fill) {
  return [exchange = std::move(exchange), fill](Result<T> result) {
    if (!result.ok()) return exchange->Send(Problem(result.status()));
    pb::ClusterAnswer answer;
    fill(*result, &answer);
    Send(exchange, answer);
  };
}

DoneCallback Done(ExchangePtr exchange) {
  return [exchange = std::move(exchange)](const Status& status) {
    if (!status.ok()) return exchange->Send(Problem(status));
    Send(exchange, {});
  };
}

Callback<TableSchema> SchemaTo(ExchangePtr exchange) {
  return Filled<TableSchema>(std::move(exchange),
                             [](const TableSchema& schema, pb::ClusterAnswer* answer) {
                               answer->add_schemas(SerializeSchema(schema));
                             });
}

void AnswerKnowledge(const Engine& engine, const ExchangePtr& exchange) {
  const Engine::Knowledge known = engine.knowledge();
  pb::ClusterAnswer answer;
  pb::ClusterAnswer::Knowledge* out = answer.mutable_knowledge();
  out->set_servers(known.servers);
  out->set_regions(known.regions);
  out->set_indexes_missing(known.indexes_missing);
  out->set_indexes_left_out(known.indexes_left_out);
  out->set_filter_bytes(known.filter_bytes);
  out->set_max_filter_bytes(known.max_filter_bytes);
  Send(exchange, answer);
}

void AwaitRouted(Engine* engine, const pb::ClusterCall::Routed& call, const ExchangePtr& exchange) {
  const auto schema = engine->Table(call.table());
  if (!schema.ok()) return exchange->Send(Problem(schema.status()));
  pb::ClusterAnswer answer;
  answer.set_routed(
      engine->WaitUntilRouted(**schema, std::min(kLongestWait, SentDuration(call.timeout_ns()))));
  Send(exchange, answer);
}

void AnswerCapabilities(const ClusterAdmin& admin, const ExchangePtr& exchange) {
  pb::ClusterAnswer answer;
  for (const Capability capability :
       {Capability::kKillServer, Capability::kPauseServer, Capability::kResumeServer,
        Capability::kBalance, Capability::kCompact}) {
    if (admin.Can(capability)) answer.add_capabilities(static_cast<uint32_t>(capability));
  }
  Send(exchange, answer);
}

// A call that changes nothing; false: it is another one.
bool Look(OpenedStore* store, const pb::ClusterCall& call, const ExchangePtr& exchange) {
  Engine& engine = store->engine();
  switch (call.call_case()) {
    case pb::ClusterCall::kListServers:
      engine.cluster().ListServers(Filled<std::vector<ServerInfo>>(
          exchange, [](const std::vector<ServerInfo>& servers, pb::ClusterAnswer* answer) {
            for (const ServerInfo& server : servers) {
              ToMessage(ServerStatus{.info = server}, answer->add_servers());
            }
          }));
      return true;
    case pb::ClusterCall::kListTables:
      engine.cluster().ListTables(Filled<std::vector<TableSchema>>(
          exchange, [](const std::vector<TableSchema>& tables, pb::ClusterAnswer* answer) {
            for (const TableSchema& table : tables) answer->add_schemas(SerializeSchema(table));
          }));
      return true;
    case pb::ClusterCall::kGetTable:
      engine.cluster().GetTable(call.get_table(), SchemaTo(exchange));
      return true;
    case pb::ClusterCall::kListRegions: {
      std::vector<KeyRange> stale;
      for (const auto& span : call.list_regions().stale()) {
        stale.push_back({span.start(), span.end()});
      }
      engine.cluster().ListRegions(
          call.list_regions().table(), std::move(stale),
          Filled<std::vector<RegionInfo>>(
              exchange, [](const std::vector<RegionInfo>& regions, pb::ClusterAnswer* answer) {
                for (const RegionInfo& region : regions) ToMessage(region, answer->add_regions());
              }));
      return true;
    }
    case pb::ClusterCall::kIndexProgress:
      store->admin().GetIndexProgress(
          call.index_progress().table(), call.index_progress().index(),
          Filled<IndexProgress>(exchange,
                                [](const IndexProgress& progress, pb::ClusterAnswer* answer) {
                                  answer->mutable_progress()->set_regions(progress.regions);
                                  answer->mutable_progress()->set_complete(progress.complete);
                                  answer->mutable_progress()->set_entries(progress.entries);
                                }));
      return true;
    case pb::ClusterCall::kStatus:
      store->admin().GetStatus(Filled<ClusterStatus>(
          exchange, [](const ClusterStatus& status, pb::ClusterAnswer* answer) {
            for (const ServerStatus& server : status.servers) {
              ToMessage(server, answer->add_servers());
            }
            answer->set_pending_work(status.pending_work);
          }));
      return true;
    case pb::ClusterCall::kGetJob:
      store->admin().GetJob(
          call.get_job(),
          Filled<JobInfo>(exchange, [](const JobInfo& job, pb::ClusterAnswer* answer) {
            ToMessage(job, answer->mutable_job());
          }));
      return true;
    case pb::ClusterCall::kKnowledge:
      AnswerKnowledge(engine, exchange);
      return true;
    case pb::ClusterCall::kAwaitRouted:
      AwaitRouted(&engine, call.await_routed(), exchange);
      return true;
    case pb::ClusterCall::kCapabilities:
      AnswerCapabilities(store->admin(), exchange);
      return true;
    default:
      return false;
  }
}

// The call with a schema whose last column or index is to be added.
template <class Add>
void WithSchema(const std::string& bytes, const ExchangePtr& exchange, Add add) {
  auto schema = ParseSchema(bytes);
  if (!schema.ok()) return exchange->Send(Problem(InvalidArgument(schema.status().message())));
  add(*std::move(schema));
}

void WithRegion(uint64_t number, const ExchangePtr& exchange,
                const std::function<void(RegionId)>& change) {
  const auto region = RegionId::Of(number);
  if (!region.ok()) return exchange->Send(Problem(region.status()));
  change(*region);
}

void ChangeTable(ClusterAdmin* admin, const pb::ClusterCall& call, const ExchangePtr& exchange) {
  switch (call.call_case()) {
    case pb::ClusterCall::kCreateTable:
      return WithSchema(call.create_table(), exchange, [&](TableSchema schema) {
        admin->CreateTable(std::move(schema), SchemaTo(exchange));
      });
    case pb::ClusterCall::kDropTable:
      return admin->DropTable(call.drop_table().table(),
                              {.delete_attached = call.drop_table().delete_attached()},
                              Done(exchange));
    case pb::ClusterCall::kAddColumn:
      return WithSchema(call.add_column().schema(), exchange, [&](TableSchema schema) {
        admin->AddColumn(call.add_column().table(), std::move(schema.columns.back()),
                         SchemaTo(exchange));
      });
    case pb::ClusterCall::kCreateIndex:
      return WithSchema(call.create_index().schema(), exchange, [&](TableSchema schema) {
        if (schema.indexes.empty()) {
          return exchange->Send(Problem(InvalidArgument("the schema has no index to create")));
        }
        admin->CreateIndex(call.create_index().table(), std::move(schema.indexes.back()),
                           SchemaTo(exchange));
      });
    case pb::ClusterCall::kDropIndex:
      return admin->DropIndex(call.drop_index().table(), call.drop_index().index(),
                              SchemaTo(exchange));
    default:
      return exchange->Send(Problem(InvalidArgument(
          "cannot read the request: its body is no ClusterCall that this version knows")));
  }
}

void ChangeCluster(ClusterAdmin* admin, const pb::ClusterCall& call, const ExchangePtr& exchange) {
  switch (call.call_case()) {
    case pb::ClusterCall::kSplitRegion:
      return WithRegion(call.split_region().region(), exchange, [&](RegionId region) {
        admin->SplitRegion(region, call.split_region().key(), Done(exchange));
      });
    case pb::ClusterCall::kMergeRegion:
      return WithRegion(call.merge_region(), exchange,
                        [&](RegionId region) { admin->MergeRegion(region, Done(exchange)); });
    case pb::ClusterCall::kMoveRegion:
      return WithRegion(call.move_region().region(), exchange, [&](RegionId region) {
        admin->MoveRegion(region, call.move_region().server(), Done(exchange));
      });
    case pb::ClusterCall::kKillServer:
      return admin->KillServer(call.kill_server(), Done(exchange));
    case pb::ClusterCall::kPauseServer:
      return admin->PauseServer(call.pause_server(), Done(exchange));
    case pb::ClusterCall::kResumeServer:
      return admin->ResumeServer(call.resume_server(), Done(exchange));
    case pb::ClusterCall::kStartJob: {
      auto job = FromMessage(call.start_job());
      if (!job.ok()) return exchange->Send(Problem(job.status()));
      return admin->StartJob(
          *std::move(job),
          Filled<uint64_t>(exchange, [](uint64_t number, pb::ClusterAnswer* answer) {
            answer->set_job_number(number);
          }));
    }
    default:
      return ChangeTable(admin, call, exchange);
  }
}

}  // namespace

void ClusterCalls::Answer(const Call& call) {
  pb::ClusterCall message;
  if (!message.ParseFromString(call.request().body)) {
    return call.exchange->Send(
        Problem(InvalidArgument("cannot read the request: its body is no ClusterCall")));
  }
  if (Look(store_, message, call.exchange)) return;
  if (!may_administer_) {
    return call.exchange->Send(Problem(
        403, FailedPrecondition("this server does not change tables, indexes, regions or servers: "
                                "it was started without --admin")));
  }
  ChangeCluster(&store_->admin(), message, call.exchange);
}

}  // namespace tamis::server
