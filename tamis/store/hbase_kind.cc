// A namespace of an HBase: hbase://HOST:PORT,...[/NAMESPACE][?tls=true&ca=FILE...].
#include "tamis/base/answers.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/hbase_cluster_admin.h"
#include "tamis/store/hbase_name.h"
#include "tamis/store/store_kind.h"

namespace tamis {
namespace {

// A cluster has this long to answer when it is opened.
constexpr Duration kPatience = std::chrono::seconds(20);
constexpr std::chrono::milliseconds kDiagnosis(3'000);

Status Open(const std::string& name, const OpenedStore::Options& /*options*/, Executor* executor,
            OpenedKind* opened) {
  TAMIS_ASSIGN_OR_RETURN(const HBaseName parsed, ParseHBaseName(name));
  const hbase::ClientOptions client{.addresses = parsed.addresses, .tls = parsed.tls};
  TAMIS_ASSIGN_OR_RETURN(
      const std::shared_ptr<HBaseCluster> cluster,
      HBaseCluster::Open({.client = client, .name_space = parsed.name_space}, executor));
  opened->name = name;
  opened->cluster = cluster;
  HBaseClusterAdmin::Options options;
  options.client.addresses = parsed.addresses;
  options.client.tls = parsed.tls;
  TAMIS_ASSIGN_OR_RETURN(opened->admin, HBaseClusterAdmin::Open(options, cluster.get(), executor));
  // A wrong address is reported here, at opening.
  const auto tables = AwaitResult<std::vector<TableSchema>>(
      executor, {.deadline = executor->Now() + kPatience},
      [&](auto done) { cluster->ListTables(std::move(done)); });
  if (tables.ok()) return Status::Ok();
  const bool late = tables.status().code() == StatusCode::kDeadlineExceeded;
  return (late ? HBaseCluster::WhyNoAnswer(client, kDiagnosis) : tables.status())
      .WithContext("cannot open store \"" + name + "\": HBase does not answer");
}

Result<std::string> Identity(const std::string& name, const OpenedStore::Options& /*options*/) {
  return name;
}

}  // namespace

constinit const StoreKind kHBaseKind = {
    .prefix = "hbase",
    .form = "hbase://HOST:PORT,...[/NAMESPACE][?tls=true&ca=FILE]",
    .open = Open,
    .identity = Identity};

}  // namespace tamis
