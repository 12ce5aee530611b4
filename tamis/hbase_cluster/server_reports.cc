#include "tamis/hbase_cluster/server_reports.h"

#include <utility>

#include "tamis/base/answers.h"
#include "tamis/hbase_cluster/attachment.h"
#include "tamis/hbase_cluster/index_reports.h"
#include "tamis/hbase_cluster/payload.pb.h"

namespace tamis {
namespace {

constexpr Duration kAnswerTime = std::chrono::seconds(5);
constexpr std::chrono::milliseconds kDescribeTime(5'000);

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

}  // namespace

std::vector<Result<pb::StatusReply>> ServerReports::AskStatus(
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

Result<ClusterStatus> ServerReports::GetStatus() {
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
           .lease_left = Duration(static_cast<Duration::rep>(one.lease_left_ns())),
           .user = one.user(),
           .host = one.host()});
    }
    status.pending_work += reply.pending_work();
  }
  return status;
}

Result<IndexProgress> ServerReports::GetIndexProgress(const std::string& name,
                                                      const std::string& index) {
  TAMIS_ASSIGN_OR_RETURN(const IndexedTable table, cluster_->tables().FindReadable(name));
  const IndexSpec* spec = table.stored.FindIndex(index);
  if (spec == nullptr) return NotFound("table \"" + name + "\" has no index \"" + index + "\"");
  TAMIS_ASSIGN_OR_RETURN(auto regions, regions_->Of(table.description.name));
  IndexReports reports(std::move(regions));
  const std::vector<std::string> servers = reports.Servers();
  const auto replies = AskStatus(servers, table.schema().id);
  for (size_t i = 0; i < servers.size(); ++i) reports.Add(servers[i], replies[i]);
  return reports.Progress(spec->id);
}

Result<Installation> ServerReports::AskProcesses() {
  const hbase::ServiceCall call{.service = "tamis.pb.Installation",
                                .method = "Describe",
                                .request = pb::Payload().SerializeAsString(),
                                .repeat = true,
                                .timeout = kDescribeTime};
  TAMIS_ASSIGN_OR_RETURN(const hbase::ClusterState state, client_->Cluster());
  Answers<hbase::ServiceReply> answers(executor_);
  for (size_t i = 0; i < state.servers.size(); ++i) {
    client_->ExecServer(state.servers[i].name, call, answers.To(i));
  }
  Installation installation{
      .program_version = TAMIS_VERSION,
      .hbase_version = state.version,
      .master = Described(state.master, state.master_coprocessors, client_->ExecMaster(call)),
      .servers = {},
      .tables = {}};
  std::vector<hbase::ServiceReply> replies(state.servers.size(), {.answer = DataLoss("no answer")});
  // Each call has a time limit, so all are answered.
  for (size_t missing = replies.size(); missing > 0; --missing) {
    auto answer = answers.Next({.cancelled = &closed_});
    if (!answer) return Cancelled("the cluster was closed");
    replies[answer->question] = std::move(answer->value);
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    const auto& server = state.servers[i];
    installation.servers.push_back(Described(server.name, server.coprocessors, replies[i]));
  }
  return installation;
}

Status ServerReports::CheckJar(bool strict, const TableSchema& table) {
  TAMIS_ASSIGN_OR_RETURN(const Installation installation, AskProcesses());
  const std::vector<std::string> missing = MissingJar(installation, strict, table);
  if (missing.empty()) return Status::Ok();
  return FailedPrecondition(JoinSentences(missing) + "; tamis doctor looks over all of it");
}

Result<std::vector<Finding>> ServerReports::Examine() {
  TAMIS_ASSIGN_OR_RETURN(Installation installation, AskProcesses());
  TAMIS_ASSIGN_OR_RETURN(auto tables, client_->Tables());
  for (hbase::TableDescription& table : tables) {
    auto indexed = ReadIndexedTable(table);
    installation.tables.push_back({std::move(table), std::move(indexed)});
  }
  return tamis::Examine(installation);
}

}  // namespace tamis
