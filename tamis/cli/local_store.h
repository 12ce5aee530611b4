// LocalStore: an embedded cluster in a directory, with the coordinator over it.
#pragma once

#include <memory>
#include <string>

#include "tamis/base/status.h"
#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"

namespace tamis {

class LocalStore {
 public:
  struct Options {
    int servers = 8;
    uint64_t split_bytes = uint64_t{64} << 20;
    bool sync = false;
    bool salvage = false;  // see Store::Options
    bool create = true;  // when the directory is not there
  };

  // `name` is a directory, or "rocks:" and a directory.
  static Result<std::shared_ptr<LocalStore>> Open(const std::string& name, const Options& options);
  // As Open, but the stores of a process are shared: several connections of one process may work on
  // one directory, which is locked against other processes.
  static Result<std::shared_ptr<LocalStore>> OpenShared(const std::string& name,
                                                        const Options& options);
  ~LocalStore();

  const std::string& directory() const { return directory_; }
  Engine& engine() { return *engine_; }
  RocksCluster& cluster() { return *cluster_; }

 private:
  LocalStore() = default;

  std::string directory_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace tamis
