#include "tamis/store/opened_store.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "tamis/base/exception_status.h"
#include "tamis/base/thread_executor.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/hbase_cluster_admin.h"
#include "tamis/query/define_table.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/store/hbase_name.h"
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

constexpr std::string_view kHBase = "hbase";
// So long a cluster has to say that it is there.
constexpr Duration kPatience = std::chrono::seconds(20);
constexpr std::chrono::milliseconds kDiagnosis(3'000);

struct Directory {
  std::string path;
  bool read_only = false;
};

Result<Directory> DirectoryOf(const std::string& name) {
  const std::string_view kind = KindOf(name);
  if (!kind.empty() && kind != "rocks") {
    return InvalidArgument("cannot open store \"" + name + "\": there is no kind of store \"" +
                           std::string(kind) +
                           "\"; there is rocks:DIRECTORY (write a directory of that name as \"./" +
                           name + "\") and hbase://HOST:PORT,...[/NAMESPACE][?tls=true&ca=FILE]");
  }
  Directory directory{.path = kind.empty() ? name : name.substr(kind.size() + 1)};
  // A name without a kind is a path, whatever it holds.
  const size_t mode = directory.path.rfind("?mode=");
  if (!kind.empty() && mode != std::string::npos) {
    const std::string value = directory.path.substr(mode + 6);
    if (value != "ro" && value != "rw") {
      return InvalidArgument("cannot open store \"" + name + "\": its mode is \"" + value +
                             "\"; there is ?mode=ro (reading only) and ?mode=rw");
    }
    directory.read_only = value == "ro";
    directory.path.resize(mode);
  }
  if (!directory.path.empty()) return directory;
  return InvalidArgument("no store is named; give a directory with --store or $TAMIS_STORE");
}

}  // namespace

struct OpenedStore::Parts {
  std::string name;
  std::unique_ptr<ThreadExecutor> executor;
  // Exactly one of the two kinds.
  std::unique_ptr<RocksCluster> rocks;
  std::unique_ptr<HBaseCluster> hbase;
  std::unique_ptr<HBaseClusterAdmin> hbase_admin;
  std::unique_ptr<Engine> engine;

  Cluster* cluster() const {
    if (hbase) return hbase.get();
    return rocks.get();
  }
  ClusterAdmin* admin() const {
    if (hbase_admin) return hbase_admin.get();
    return rocks.get();
  }
  Status OpenRocks(const std::string& store, const Options& options);
  Status OpenHBase(const std::string& store);

  ~Parts() {
    // Tasks use all of it until the executor has stopped.
    if (executor) executor->Stop();
    engine.reset();
    hbase_admin.reset();
    hbase.reset();
    rocks.reset();
  }
};

Status OpenedStore::Parts::OpenRocks(const std::string& store, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const Directory directory, DirectoryOf(store));
  name = directory.path;
  RocksCluster::Options cluster;
  cluster.store.directory = name;
  cluster.store.create = options.create;
  cluster.store.sync = options.sync;
  cluster.store.salvage = options.salvage;
  cluster.store.read_only = options.read_only || directory.read_only;
  cluster.servers = options.servers;
  cluster.server.split_bytes = options.split_bytes;
  cluster.server.filter_bytes = options.server_filter_bytes;
  TAMIS_ASSIGN_OR_RETURN(rocks, RocksCluster::Open(std::move(cluster), executor.get()));
  return Status::Ok();
}

Status OpenedStore::Parts::OpenHBase(const std::string& store) {
  TAMIS_ASSIGN_OR_RETURN(const HBaseName parsed, ParseHBaseName(store));
  name = store;
  const hbase::ClientOptions client{.addresses = parsed.addresses, .tls = parsed.tls};
  TAMIS_ASSIGN_OR_RETURN(
      hbase,
      HBaseCluster::Open({.client = client, .name_space = parsed.name_space}, executor.get()));
  HBaseClusterAdmin::Options options;
  options.client.addresses = parsed.addresses;
  options.client.tls = parsed.tls;
  TAMIS_ASSIGN_OR_RETURN(hbase_admin,
                         HBaseClusterAdmin::Open(options, hbase.get(), executor.get()));
  // A wrong address is reported here, at opening.
  const auto tables = AwaitResult<std::vector<TableSchema>>(
      executor.get(), {.deadline = executor->Now() + kPatience},
      [&](auto done) { hbase->ListTables(std::move(done)); });
  if (tables.ok()) return Status::Ok();
  const bool late = tables.status().code() == StatusCode::kDeadlineExceeded;
  return (late ? HBaseCluster::WhyNoAnswer(client, kDiagnosis) : tables.status())
      .WithContext("cannot open store \"" + store + "\": HBase does not answer");
}

OpenedStore::OpenedStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
OpenedStore::~OpenedStore() = default;

Result<std::shared_ptr<OpenedStore>> OpenedStore::Open(const std::string& name,
                                                       const Options& options) {
  return WithoutExceptions([&]() -> Result<std::shared_ptr<OpenedStore>> {
    TAMIS_ASSIGN_OR_RETURN(auto store, Make(name, options));
    return std::shared_ptr<OpenedStore>(std::move(store));
  });
}

Result<std::unique_ptr<OpenedStore>> OpenedStore::Make(const std::string& name,
                                                       const Options& options) {
  auto parts = std::make_unique<Parts>();
  parts->executor = std::make_unique<ThreadExecutor>(
      static_cast<int>(std::max(4u, 2 * std::thread::hardware_concurrency())));
  if (KindOf(name) == kHBase) {
    TAMIS_RETURN_IF_ERROR(parts->OpenHBase(name));
  } else {
    TAMIS_RETURN_IF_ERROR(parts->OpenRocks(name, options));
  }
  parts->engine =
      std::make_unique<Engine>(parts->cluster(), parts->executor.get(),
                               Engine::Options{.max_filter_bytes = options.max_filter_bytes});
  return std::unique_ptr<OpenedStore>(new OpenedStore(std::move(parts)));
}

namespace {

// The stores of the process that OpenShared has opened. Until one has ended, which may take a
// while, its directory is locked. Never destroyed: a store may end behind what is.
struct SharedStores {
  std::mutex mutex;
  std::condition_variable ended;
  std::map<std::string, std::weak_ptr<OpenedStore>> open;

  static SharedStores& Get() {
    static SharedStores& shared = *new SharedStores;
    return shared;
  }
};

struct EndShared {
  std::string name;

  void operator()(OpenedStore* last) const {
    delete last;
    SharedStores& shared = SharedStores::Get();
    std::lock_guard ending(shared.mutex);
    shared.open.erase(name);
    shared.ended.notify_all();
  }
};

}  // namespace

Result<std::shared_ptr<OpenedStore>> OpenedStore::OpenShared(const std::string& name,
                                                             const Options& options) {
  return WithoutExceptions([&] { return FindOrMake(name, options); });
}

Result<std::shared_ptr<OpenedStore>> OpenedStore::FindOrMake(const std::string& name,
                                                             const Options& options) {
  SharedStores& shared = SharedStores::Get();
  std::string canonical = name;
  if (KindOf(name) != kHBase) {
    TAMIS_ASSIGN_OR_RETURN(const Directory directory, DirectoryOf(name));
    std::error_code ignored;
    canonical = std::filesystem::weakly_canonical(directory.path, ignored).string();
    if (options.read_only || directory.read_only) canonical += "?mode=ro";
  }
  std::unique_ptr<OpenedStore, EndShared> owned(nullptr, {canonical});  // ends without the lock
  std::unique_lock lock(shared.mutex);
  for (auto known = shared.open.find(canonical); known != shared.open.end();
       known = shared.open.find(canonical)) {
    if (auto store = known->second.lock()) return store;
    shared.ended.wait(lock);
  }
  TAMIS_ASSIGN_OR_RETURN(auto made, Make(name, options));
  std::weak_ptr<OpenedStore>& entry = shared.open[canonical];
  owned.reset(made.release());
  std::shared_ptr<OpenedStore> store(std::move(owned));
  entry = store;
  return store;
}

const std::string& OpenedStore::name() const { return parts_->name; }
Engine& OpenedStore::engine() { return *parts_->engine; }
ClusterAdmin& OpenedStore::admin() { return *parts_->admin(); }

Result<SchemaPtr> OpenedStore::Define(const std::string& table,
                                      const std::vector<std::string>& definition) {
  return WithoutExceptions([&]() -> Result<SchemaPtr> {
    TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted, ParseDefinition(table, definition));
    return DefineTable(&engine(), &admin(), wanted, {});
  });
}

}  // namespace tamis
