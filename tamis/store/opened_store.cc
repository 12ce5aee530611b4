#include "tamis/store/opened_store.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "tamis/base/thread_executor.h"
#include "tamis/query/define_table.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/definition.h"

namespace tamis {
namespace {

// "hbase" of "hbase://host"; empty for a path.
std::string_view KindOf(std::string_view name) {
  const auto is_letter = [](unsigned char c) { return (c >= 'a' && c <= 'z') || c == '+'; };
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos || colon == 0) return "";
  const std::string_view kind = name.substr(0, colon);
  return std::ranges::all_of(kind, is_letter) ? kind : "";
}

Result<std::string> DirectoryOf(const std::string& name) {
  const std::string_view kind = KindOf(name);
  if (!kind.empty() && kind != "rocks") {
    return InvalidArgument(
        "cannot open store \"" + name + "\": there is no kind of store \"" + std::string(kind) +
        "\"; there is rocks:DIRECTORY (write a directory of that name as \"./" + name + "\")");
  }
  std::string directory = kind.empty() ? name : name.substr(kind.size() + 1);
  if (!directory.empty()) return directory;
  return InvalidArgument("no store is named; give a directory with --store or $TAMIS_STORE");
}

}  // namespace

struct OpenedStore::Parts {
  std::string name;
  std::unique_ptr<ThreadExecutor> executor;
  std::unique_ptr<RocksCluster> cluster;
  std::unique_ptr<Engine> engine;

  ~Parts() {
    // Tasks use all of it until the executor has stopped.
    if (executor) executor->Stop();
    engine.reset();
    cluster.reset();
  }
};

OpenedStore::OpenedStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
OpenedStore::~OpenedStore() = default;

Result<std::shared_ptr<OpenedStore>> OpenedStore::Open(const std::string& name,
                                                       const Options& options) {
  auto parts = std::make_unique<Parts>();
  TAMIS_ASSIGN_OR_RETURN(parts->name, DirectoryOf(name));
  parts->executor = std::make_unique<ThreadExecutor>(
      static_cast<int>(std::max(4u, 2 * std::thread::hardware_concurrency())));
  RocksCluster::Options cluster;
  cluster.store.directory = parts->name;
  cluster.store.create = options.create;
  cluster.store.sync = options.sync;
  cluster.store.salvage = options.salvage;
  cluster.servers = options.servers;
  cluster.server.split_bytes = options.split_bytes;
  TAMIS_ASSIGN_OR_RETURN(parts->cluster,
                         RocksCluster::Open(std::move(cluster), parts->executor.get()));
  parts->engine =
      std::make_unique<Engine>(parts->cluster.get(), parts->executor.get(), Engine::Options{});
  return std::shared_ptr<OpenedStore>(new OpenedStore(std::move(parts)));
}

Result<std::shared_ptr<OpenedStore>> OpenedStore::OpenShared(const std::string& name,
                                                             const Options& options) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<OpenedStore>> open;
  TAMIS_ASSIGN_OR_RETURN(const std::string directory, DirectoryOf(name));
  std::error_code ignored;
  const std::string canonical = std::filesystem::weakly_canonical(directory, ignored).string();
  std::lock_guard lock(mutex);
  std::weak_ptr<OpenedStore>& known = open[canonical];
  if (auto store = known.lock()) return store;
  auto store = Open(name, options);
  if (store.ok()) known = *store;
  return store;
}

const std::string& OpenedStore::name() const { return parts_->name; }
Engine& OpenedStore::engine() { return *parts_->engine; }
ClusterAdmin& OpenedStore::admin() { return *parts_->cluster; }

Result<SchemaPtr> OpenedStore::Define(const std::string& table,
                                      const std::vector<std::string>& definition) {
  TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted, ParseDefinition(table, definition));
  return DefineTable(&engine(), &admin(), wanted, {});
}

}  // namespace tamis
