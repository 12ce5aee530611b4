// A namespace of an HBase, found by masters and region servers, by an hbase-site.xml, or by its
// ZooKeeper (hbase_name.h).
#include <algorithm>

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

Status OpenHBase(const std::string& name, const OpenedStore::Options& /*options*/,
                 Executor* executor, OpenedKind* opened) {
  TAMIS_ASSIGN_OR_RETURN(const HBaseName parsed, ParseHBaseName(name));
  const hbase::ClientOptions& client = parsed.client;
  TAMIS_ASSIGN_OR_RETURN(
      const std::shared_ptr<HBaseCluster> cluster,
      HBaseCluster::Open({.client = client, .name_space = parsed.name_space}, executor));
  opened->name = name;
  opened->cluster = cluster;
  HBaseClusterAdmin::Options options;
  const auto patience = options.client.operation_timeout;
  options.client = client;
  options.client.operation_timeout = std::max(patience, client.operation_timeout);
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

Result<std::string> HBaseIdentity(const std::string& name,
                                  const OpenedStore::Options& /*options*/) {
  return name;
}

}  // namespace

constinit const StoreKind kHBaseKind = {
    .prefix = "hbase",
    .form = "hbase:///[NAMESPACE]?site=FILE or hbase://HOST:PORT,...[/NAMESPACE]",
    .open = OpenHBase,
    .identity = HBaseIdentity};
constinit const StoreKind kHBaseByZooKeeperKind = {
    .prefix = "hbase+zk",
    .form = "hbase+zk://HOST[:PORT],...[/PARENT[/NAMESPACE]]",
    .open = OpenHBase,
    .identity = HBaseIdentity};

}  // namespace tamis
