#include "tamis/cli/local_store.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

namespace tamis {
namespace {

Result<std::string> DirectoryOf(const std::string& name) {
  std::string directory = name.starts_with("rocks:") ? name.substr(6) : name;
  if (directory.empty()) {
    return InvalidArgument("no store is named; give a directory with --store or $TAMIS_STORE");
  }
  for (const char* scheme : {"hbase:", "http:", "https:"}) {
    if (directory.starts_with(scheme)) {
      return InvalidArgument("cannot open \"" + name +
                             "\": only stores in a directory can be opened (rocks:DIRECTORY)");
    }
  }
  return directory;
}

}  // namespace

Result<std::shared_ptr<LocalStore>> LocalStore::Open(const std::string& name,
                                                     const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(std::string directory, DirectoryOf(name));
  std::shared_ptr<LocalStore> store(new LocalStore());
  store->directory_ = directory;
  store->executor_ = std::make_unique<ThreadExecutor>(
      static_cast<int>(std::max(4u, 2 * std::thread::hardware_concurrency())));
  RocksCluster::Options cluster;
  cluster.store.directory = std::move(directory);
  cluster.store.create = options.create;
  cluster.store.sync = options.sync;
  cluster.store.salvage = options.salvage;
  cluster.servers = options.servers;
  cluster.server.split_bytes = options.split_bytes;
  TAMIS_ASSIGN_OR_RETURN(store->cluster_,
                         RocksCluster::Open(std::move(cluster), store->executor_.get()));
  store->engine_ =
      std::make_unique<Engine>(store->cluster_.get(), store->executor_.get(), Engine::Options{});
  return store;
}

Result<std::shared_ptr<LocalStore>> LocalStore::OpenShared(const std::string& name,
                                                           const Options& options) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<LocalStore>> open;
  TAMIS_ASSIGN_OR_RETURN(const std::string directory, DirectoryOf(name));
  std::error_code ignored;
  const std::string canonical = std::filesystem::weakly_canonical(directory, ignored).string();
  std::lock_guard lock(mutex);
  std::weak_ptr<LocalStore>& known = open[canonical];
  if (auto store = known.lock()) return store;
  auto store = Open(name, options);
  if (store.ok()) known = *store;
  return store;
}

LocalStore::~LocalStore() {
  // Tasks use all of it until the executor has stopped.
  if (executor_) executor_->Stop();
  engine_.reset();
  cluster_.reset();
}

}  // namespace tamis
