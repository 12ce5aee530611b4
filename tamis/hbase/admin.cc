#include "tamis/hbase/admin.h"

#include <algorithm>

#include "tamis/hbase/printable.h"
#include "tamis/hbase/refusals.h"
#include "tamis/hbase/region_call.h"
#include "tamis/hbase/retry_pauses.h"
#include "tamis/hbase/session.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

template <class Map, class Pairs>
void ToPairs(const Map& map, Pairs* out) {
  for (const auto& [name, value] : map) {
    auto& pair = *out->Add();
    if constexpr (requires { pair.set_first(name); }) {
      pair.set_first(name);
      pair.set_second(value);
    } else {
      pair.set_name(name);
      pair.set_value(value);
    }
  }
}

template <class Pairs>
std::map<std::string, std::string> FromPairs(const Pairs& pairs) {
  std::map<std::string, std::string> map;
  for (const auto& pair : pairs) {
    if constexpr (requires { pair.first(); }) {
      map[pair.first()] = pair.second();
    } else {
      map[pair.name()] = pair.value();
    }
  }
  return map;
}

void SchemaToProto(const TableDescription& table, pb::TableSchema* out) {
  ToProto(NormalTableName(table.name), out->mutable_table_name());
  ToPairs(table.attributes, out->mutable_attributes());
  ToPairs(table.configuration, out->mutable_configuration());
  for (const FamilySchema& family : table.families) {
    pb::ColumnFamilySchema& one = *out->add_column_families();
    one.set_name(family.name);
    ToPairs(family.attributes, one.mutable_attributes());
    ToPairs(family.configuration, one.mutable_configuration());
  }
}

// "TABLE,START,TIME.ENCODED."
std::string EncodedName(const pb::RegionSpecifier& region) {
  std::string_view name = region.value();
  if (region.type() != pb::RegionSpecifier::REGION_NAME) return std::string(name);
  if (name.ends_with('.')) name.remove_suffix(1);
  return std::string(name.substr(name.rfind('.') + 1));
}

TableDescription SchemaFromProto(const pb::TableSchema& schema) {
  TableDescription table{.name = FromProto(schema.table_name()),
                         .attributes = FromPairs(schema.attributes()),
                         .configuration = FromPairs(schema.configuration()),
                         .families = {}};
  for (const pb::ColumnFamilySchema& family : schema.column_families()) {
    table.families.push_back({.name = family.name(),
                              .attributes = FromPairs(family.attributes()),
                              .configuration = FromPairs(family.configuration())});
  }
  return table;
}

}  // namespace

Task<Status> Admin::Ask(std::string method, std::shared_ptr<const Message> request, Message* answer,
                        bool repeat, Deadline deadline, Exception* thrown) {
  Backoff backoff = kRetryPauses;
  int unknown = 0;
  Status last = Unavailable("no time left");
  bool may_have_run = false;
  Refusals refusals;
  while (!session_.closed() && Clock::now() < deadline) {
    if (master_.address.host.empty()) {
      auto found = co_await session_.registry.ActiveMaster(deadline);
      if (!found.ok()) {
        last = found.status();
        if (last.code() == StatusCode::kFailedPrecondition) break;
        co_await session_.SleepUntil(
            std::min(deadline, Clock::now() + backoff.Next(session_.random)));
        continue;
      }
      master_ = *found;
    }
    const ServerName master = master_;
    // The master may need long: it moves regions during such a request. So the call's deadline is
    // that of the whole operation.
    Call call{.method = method, .parameter = request, .cells = {}, .deadline = deadline};
    if (repeat) call.deadline = session_.CallDeadline(deadline);
    const Reply reply = co_await session_.Send(
        session_.channels.To(master.address, "MasterService"), std::move(call));
    if (reply.outcome == Reply::Outcome::kAnswer) {
      if (answer == nullptr ||
          answer->ParseFromArray(reply.message.data(), static_cast<int>(reply.message.size()))) {
        co_return Status();
      }
      co_return DataLoss(method + ": an answer of the master that cannot be read");
    }
    last = reply.ToStatus().WithContext("master " + master.address.ToString());
    bool fails = last.code() == StatusCode::kInvalidArgument;
    if (reply.outcome == Reply::Outcome::kException) {
      if (thrown != nullptr) *thrown = reply.exception;
      const RetryAction retry_action = reply.exception.retry_action();
      fails = retry_action == RetryAction::kFail ||
              (retry_action == RetryAction::kElsewhere && !repeat) ||
              (retry_action == RetryAction::kUnknown && (!repeat || ++unknown == kTriesOfUnknown));
      may_have_run |= retry_action == RetryAction::kElsewhere;
      const bool moved =
          retry_action == RetryAction::kRelocate || retry_action == RetryAction::kElsewhere;
      if (moved) master_ = {};
    } else {
      if (reply.outcome == Reply::Outcome::kUnknown) {
        may_have_run = true;
        fails |= !repeat;
      } else {
        fails |= refusals.IsFinal(master, last);
      }
      if (master_ == master) master_ = {};
      session_.registry.TryNext();
    }
    if (fails) break;
    co_await session_.SleepUntil(std::min(deadline, Clock::now() + backoff.Next(session_.random)));
  }
  if (session_.closed()) co_return Cancelled("the client was closed");
  if (may_have_run && !repeat) {
    co_return MayHaveRun(method, last);
  }
  co_return last.WithContext(method);
}

Task<Result<uint64_t>> Admin::Start(std::string method, std::shared_ptr<const Message> request,
                                    Deadline deadline) {
  pb::CreateTableResponse answer;
  const Status asked = co_await Ask(std::move(method), std::move(request), &answer, true, deadline);
  if (!asked.ok()) co_return asked;
  co_return answer.proc_id();
}

Task<Result<uint64_t>> Admin::StartCreateTable(TableDescription table,
                                               std::vector<std::string> split_keys,
                                               Deadline deadline) {
  auto request = std::make_shared<pb::CreateTableRequest>();
  SchemaToProto(table, request->mutable_table_schema());
  for (const std::string& key : split_keys) request->add_split_keys(key);
  request->set_nonce_group(session_.nonce_group);
  request->set_nonce(session_.NextNonce());
  co_return co_await Start("CreateTable", std::move(request), deadline);
}

Task<Result<uint64_t>> Admin::StartModifyTable(TableDescription table, bool reopen,
                                               Deadline deadline) {
  auto request = std::make_shared<pb::ModifyTableRequest>();
  ToProto(NormalTableName(table.name), request->mutable_table_name());
  SchemaToProto(table, request->mutable_table_schema());
  request->set_reopen_regions(reopen);
  request->set_nonce_group(session_.nonce_group);
  request->set_nonce(session_.NextNonce());
  co_return co_await Start("ModifyTable", std::move(request), deadline);
}

Task<Result<uint64_t>> Admin::StartOnTable(std::string method, std::string table,
                                           Deadline deadline) {
  auto request = std::make_shared<pb::EnableTableRequest>();
  ToProto(NormalTableName(table), request->mutable_table_name());
  request->set_nonce_group(session_.nonce_group);
  request->set_nonce(session_.NextNonce());
  co_return co_await Start(std::move(method), std::move(request), deadline);
}

Task<Result<uint64_t>> Admin::StartSplit(Region region, std::string key, Deadline deadline) {
  auto request = std::make_shared<pb::SplitTableRegionRequest>();
  ToProto(region, request->mutable_region_info());
  if (!key.empty()) request->set_split_row(key);
  request->set_nonce_group(session_.nonce_group);
  request->set_nonce(session_.NextNonce());
  co_return co_await Start("SplitRegion", std::move(request), deadline);
}

Task<Result<uint64_t>> Admin::StartMerge(std::vector<Region> regions, Deadline deadline) {
  auto request = std::make_shared<pb::MergeTableRegionsRequest>();
  for (const Region& region : regions) {
    pb::RegionSpecifier& one = *request->add_region();
    one.set_type(pb::RegionSpecifier::ENCODED_REGION_NAME);
    one.set_value(region.encoded);
  }
  request->set_nonce_group(session_.nonce_group);
  request->set_nonce(session_.NextNonce());
  co_return co_await Start("MergeTableRegions", std::move(request), deadline);
}

Task<Result<uint64_t>> Admin::StartCreateNamespace(std::string name, Deadline deadline) {
  auto request = std::make_shared<pb::CreateNamespaceRequest>();
  request->mutable_namespacedescriptor()->set_name(name);
  request->set_nonce_group(session_.nonce_group);
  request->set_nonce(session_.NextNonce());
  co_return co_await Start("CreateNamespace", std::move(request), deadline);
}

Task<Result<uint64_t>> Admin::StartDeleteNamespace(std::string name, Deadline deadline) {
  auto request = std::make_shared<pb::DeleteNamespaceRequest>();
  request->set_namespacename(name);
  request->set_nonce_group(session_.nonce_group);
  request->set_nonce(session_.NextNonce());
  co_return co_await Start("DeleteNamespace", std::move(request), deadline);
}

Task<Status> Admin::AwaitProcedure(uint64_t id, Deadline deadline) {
  Backoff backoff = kRetryPauses;
  while (Clock::now() < deadline && !session_.closed()) {
    auto request = std::make_shared<pb::GetProcedureResultRequest>();
    request->set_proc_id(id);
    pb::GetProcedureResultResponse answer;
    const Status asked =
        co_await Ask("getProcedureResult", std::move(request), &answer, true, deadline);
    if (!asked.ok()) co_return asked;
    switch (answer.state()) {
      case pb::GetProcedureResultResponse::NOT_FOUND:
        co_return DeadlineExceeded("the master knows no procedure " + std::to_string(id) +
                                   " (any more): its work may have been done");
      case pb::GetProcedureResultResponse::FINISHED:
        if (answer.has_exception()) {
          const auto& exception = answer.exception().generic_exception();
          Exception thrown = ExceptionOf(exception.class_name(), exception.message());
          thrown.do_not_retry = true;  // the procedure is over
          co_return thrown.ToStatus().WithContext("procedure " + std::to_string(id));
        }
        co_return Status();
      case pb::GetProcedureResultResponse::RUNNING:
        break;
    }
    co_await session_.SleepUntil(std::min(
        deadline, Clock::now() + std::min<Clock::duration>(backoff.Next(session_.random),
                                                           std::chrono::milliseconds(200))));
  }
  co_return DeadlineExceeded("procedure " + std::to_string(id) +
                             " of the master goes on: ask again later");
}

Task<Status> Admin::MoveRegion(Region region, ServerName to, Deadline deadline) {
  auto request = std::make_shared<pb::MoveRegionRequest>();
  request->mutable_region()->set_type(pb::RegionSpecifier::ENCODED_REGION_NAME);
  request->mutable_region()->set_value(region.encoded);
  if (!to.address.host.empty()) ToProto(to, request->mutable_dest_server_name());
  co_return co_await Ask("MoveRegion", std::move(request), nullptr, false, deadline);
}

Task<Result<std::vector<TableDescription>>> Admin::Tables(std::string name_space,
                                                          Deadline deadline) {
  auto request = std::make_shared<pb::GetTableDescriptorsRequest>();
  if (!name_space.empty()) request->set_namespace_(name_space);
  pb::GetTableDescriptorsResponse answer;
  const Status asked =
      co_await Ask("GetTableDescriptors", std::move(request), &answer, true, deadline);
  if (!asked.ok()) co_return asked;
  std::vector<TableDescription> tables;
  for (const pb::TableSchema& schema : answer.table_schema())
    tables.push_back(SchemaFromProto(schema));
  co_return tables;
}

Task<Result<TableDescription>> Admin::Table(std::string name, Deadline deadline) {
  auto request = std::make_shared<pb::GetTableDescriptorsRequest>();
  ToProto(NormalTableName(name), request->add_table_names());
  pb::GetTableDescriptorsResponse answer;
  const Status asked =
      co_await Ask("GetTableDescriptors", std::move(request), &answer, true, deadline);
  if (!asked.ok()) co_return asked;
  if (answer.table_schema_size() == 0) {
    co_return NotFound("there is no table " + Printable(name));
  }
  co_return SchemaFromProto(answer.table_schema(0));
}

Task<Result<TableState>> Admin::StateOfTable(std::string name, Deadline deadline) {
  auto request = std::make_shared<pb::GetTableStateRequest>();
  ToProto(NormalTableName(name), request->mutable_table_name());
  pb::GetTableStateResponse answer;
  const Status asked = co_await Ask("GetTableState", std::move(request), &answer, true, deadline);
  if (!asked.ok()) co_return asked;
  co_return static_cast<TableState>(answer.table_state().state());
}

Task<Result<std::vector<std::string>>> Admin::Namespaces(Deadline deadline) {
  pb::ListNamespacesResponse answer;
  const Status asked = co_await Ask("ListNamespaces", std::make_shared<pb::ListNamespacesRequest>(),
                                    &answer, true, deadline);
  if (!asked.ok()) co_return asked;
  co_return std::vector<std::string>(answer.namespacename().begin(), answer.namespacename().end());
}

Task<ServiceReply> Admin::ExecMasterService(ServiceCall call, Deadline deadline) {
  auto request = std::make_shared<pb::CoprocessorServiceRequest>();
  request->mutable_region()->set_type(pb::RegionSpecifier::REGION_NAME);
  request->mutable_region()->set_value("");
  request->mutable_call()->set_row("");
  request->mutable_call()->set_service_name(call.service);
  request->mutable_call()->set_method_name(call.method);
  request->mutable_call()->set_request(call.request);
  pb::CoprocessorServiceResponse answer;
  Exception thrown;
  const Status asked = co_await Ask("ExecMasterService", std::move(request), &answer, call.repeat,
                                    deadline, &thrown);
  if (asked.ok()) co_return ServiceReply{.answer = answer.value().value()};
  co_return ServiceReply{.answer = asked,
                         .no_service = thrown.tells_service_is_not_there(),
                         .denied = thrown.tells_user_is_denied(),
                         .may_have_run = asked.code() == StatusCode::kDeadlineExceeded};
}

Task<Result<ClusterState>> Admin::Cluster(ClusterDetail detail, Deadline deadline) {
  auto request = std::make_shared<pb::GetClusterStatusRequest>();
  if (detail == ClusterDetail::kServers) {
    for (const auto part : {pb::SERVERS_NAME, pb::DEAD_SERVERS, pb::MASTER}) {
      request->add_options(part);
    }
  }
  pb::GetClusterStatusResponse answer;
  const Status asked =
      co_await Ask("GetClusterStatus", std::move(request), &answer, true, deadline);
  if (!asked.ok()) co_return asked;
  const pb::ClusterStatus& status = answer.cluster_status();
  ClusterState state{.version = status.hbase_version().version(),
                     .cluster_id = status.cluster_id().cluster_id(),
                     .master = FromProto(status.master()),
                     .master_coprocessors = {},
                     .backup_masters = {},
                     .servers = {},
                     .dead_servers = {},
                     .balancer_on = status.balancer_on()};
  for (const pb::Coprocessor& one : status.master_coprocessors()) {
    state.master_coprocessors.push_back(one.name());
  }
  for (const pb::ServerName& one : status.backup_masters()) {
    state.backup_masters.push_back(FromProto(one));
  }
  for (const pb::ServerName& one : status.dead_servers()) {
    state.dead_servers.push_back(FromProto(one));
  }
  if (detail == ClusterDetail::kServers) {
    for (const pb::ServerName& one : status.servers_name()) {
      state.servers.push_back({.name = FromProto(one), .coprocessors = {}});
    }
  }
  for (const pb::LiveServerInfo& live : status.live_servers()) {
    ClusterState::Server server{.name = FromProto(live.server()),
                                .coprocessors = {},
                                .used_heap_mb = live.server_load().used_heap_mb(),
                                .max_heap_mb = live.server_load().max_heap_mb()};
    for (const pb::Coprocessor& one : live.server_load().coprocessors()) {
      server.coprocessors.push_back(one.name());
    }
    for (const pb::RegionLoad& load : live.server_load().region_loads()) {
      const uint64_t megabytes = uint64_t{load.storefile_size_mb()} + load.mem_store_size_mb();
      server.region_bytes[EncodedName(load.region_specifier())] = megabytes << 20;
    }
    state.servers.push_back(std::move(server));
  }
  co_return state;
}

Task<Result<bool>> Admin::SwitchBalancer(bool on, Deadline deadline) {
  auto request = std::make_shared<pb::SetBalancerRunningRequest>();
  request->set_on(on);
  request->set_synchronous(true);
  pb::SetBalancerRunningResponse answer;
  const Status asked =
      co_await Ask("SetBalancerRunning", std::move(request), &answer, true, deadline);
  if (!asked.ok()) co_return asked;
  co_return answer.prev_balance_value();
}

Task<Result<uint64_t>> Admin::Balance(Deadline deadline) {
  pb::BalanceResponse answer;
  const Status asked =
      co_await Ask("Balance", std::make_shared<pb::BalanceRequest>(), &answer, false, deadline);
  if (!asked.ok()) co_return asked;
  co_return answer.moves_executed();
}

Task<Status> Admin::AskServer(ServerName server, std::string method,
                              std::shared_ptr<const Message> request, Message* answer,
                              Deadline deadline) {
  Call call{.method = method, .parameter = std::move(request), .cells = {}, .deadline = deadline};
  const Reply reply =
      co_await session_.Send(session_.channels.To(server.address, "AdminService"), std::move(call));
  Status status = reply.ToStatus();
  if (status.ok() && answer != nullptr &&
      !answer->ParseFromArray(reply.message.data(), static_cast<int>(reply.message.size()))) {
    status = DataLoss("an answer that cannot be read");
  }
  co_return status.WithContext(method + " at " + server.ToString());
}

Task<Status> Admin::FlushRegion(Region region, Deadline deadline) {
  auto request = std::make_shared<pb::FlushRegionRequest>();
  ToProto(region, request->mutable_region());
  co_return co_await AskServer(region.server, "FlushRegion", std::move(request), nullptr, deadline);
}

Task<Status> Admin::CompactRegion(Region region, bool major, Deadline deadline) {
  auto request = std::make_shared<pb::CompactRegionRequest>();
  ToProto(region, request->mutable_region());
  request->set_major(major);
  co_return co_await AskServer(region.server, "CompactRegion", std::move(request), nullptr,
                               deadline);
}

Task<Result<bool>> Admin::IsCompacting(Region region, Deadline deadline) {
  auto request = std::make_shared<pb::GetRegionInfoRequest>();
  ToProto(region, request->mutable_region());
  request->set_compaction_state(true);
  pb::GetRegionInfoResponse answer;
  const Status asked =
      co_await AskServer(region.server, "GetRegionInfo", std::move(request), &answer, deadline);
  if (!asked.ok()) co_return asked;
  co_return answer.compaction_state() != pb::GetRegionInfoResponse::NONE;
}

Task<Result<SplitState>> Admin::StateOfSplit(Region region, Deadline deadline) {
  auto request = std::make_shared<pb::GetRegionInfoRequest>();
  ToProto(region, request->mutable_region());
  request->set_best_split_row(true);
  pb::GetRegionInfoResponse answer;
  const Status asked = co_await AskServer(region.server, "GetRegionInfo", std::move(request),
                                          &answer, session_.CallDeadline(deadline));
  if (!asked.ok()) co_return asked;
  co_return SplitState{.splittable = answer.splittable(), .key = answer.best_split_row()};
}

}  // namespace tamis::hbase
