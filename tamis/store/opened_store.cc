#include "tamis/store/opened_store.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "tamis/base/exception_status.h"
#include "tamis/base/thread_executor.h"
#include "tamis/query/define_table.h"
#include "tamis/store/store_kind.h"
#include "tamis/table/definition.h"

namespace tamis {

struct OpenedStore::Parts {
  std::unique_ptr<ThreadExecutor> executor;
  OpenedKind opened;
  std::unique_ptr<Engine> engine;

  ~Parts() {
    if (engine) engine->Leave(std::chrono::milliseconds(200));
    // Tasks use all of it until the executor has stopped.
    if (executor) executor->Stop();
    engine.reset();
    opened.admin.reset();
    opened.cluster.reset();
  }
};

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
  TAMIS_ASSIGN_OR_RETURN(const StoreKind* const kind, KindOfStore(name));
  TAMIS_RETURN_IF_ERROR(kind->open(name, options, parts->executor.get(), &parts->opened));
  if (parts->opened.coordinator != nullptr) {
    parts->engine = std::make_unique<Engine>(std::move(parts->opened.coordinator));
  } else {
    parts->engine =
        std::make_unique<Engine>(parts->opened.cluster.get(), parts->executor.get(),
                                 Engine::Options{.max_filter_bytes = options.max_filter_bytes});
  }
  return std::unique_ptr<OpenedStore>(new OpenedStore(std::move(parts)));
}

namespace {

// The stores of the process that OpenShared has opened. Until one has ended, which may take a
// while, its directory is locked. Never destroyed: a store may end after what is.
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
  TAMIS_ASSIGN_OR_RETURN(const StoreKind* const kind, KindOfStore(name));
  TAMIS_ASSIGN_OR_RETURN(const std::string identity, kind->identity(name, options));
  std::unique_ptr<OpenedStore, EndShared> owned(nullptr, {identity});  // ends without the lock
  std::unique_lock lock(shared.mutex);
  for (auto known = shared.open.find(identity); known != shared.open.end();
       known = shared.open.find(identity)) {
    if (auto store = known->second.lock()) return store;
    shared.ended.wait(lock);
  }
  TAMIS_ASSIGN_OR_RETURN(auto made, Make(name, options));
  std::weak_ptr<OpenedStore>& entry = shared.open[identity];
  owned.reset(made.release());
  std::shared_ptr<OpenedStore> store(std::move(owned));
  entry = store;
  return store;
}

const std::string& OpenedStore::name() const { return parts_->opened.name; }
Engine& OpenedStore::engine() { return *parts_->engine; }
ClusterAdmin& OpenedStore::admin() { return *parts_->opened.admin; }

Result<SchemaPtr> OpenedStore::Define(const std::string& table,
                                      const std::vector<std::string>& definition) {
  return WithoutExceptions([&]() -> Result<SchemaPtr> {
    TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted, ParseDefinition(table, definition));
    return DefineTable(&engine(), &admin(), wanted, {});
  });
}

}  // namespace tamis
