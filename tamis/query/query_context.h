// QueryContext: the state that all searches and writes of one engine share: the cluster, the caches
// of its tables and filters, and the options of requests.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tamis/cluster/faults.h"
#include "tamis/query/table_cache.h"
#include "tamis/routing/global_index.h"

namespace tamis {

// How many search requests are under way to each server.
//
// Threads: safe.
class ServerLoads {
 public:
  // A request that is under way while it lives.
  class Request {
   public:
    Request(ServerLoads* loads, std::string server) : loads_(loads), server_(std::move(server)) {
      std::lock_guard lock(loads_->mutex_);
      ++loads_->loads_[server_];
    }
    ~Request() {
      std::lock_guard lock(loads_->mutex_);
      if (--loads_->loads_[server_] == 0) loads_->loads_.erase(server_);
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    ServerLoads* const loads_;
    const std::string server_;
  };

  int Of(const std::string& server) const {
    std::lock_guard lock(mutex_);
    auto found = loads_.find(server);
    return found == loads_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> loads_;
};

struct QueryContext {
  struct Options {
    Duration request_timeout{};
    Duration write_timeout{};
    size_t request_ranges = 8;
    int requests_in_flight = 4;
    Faults faults;
  };

  QueryContext(Cluster* cluster, Executor* executor, const Options& options,
               std::shared_ptr<GlobalIndex> global)
      : cluster(cluster),
        executor(executor),
        options(options),
        global(std::move(global)),
        tables(std::make_shared<TableCache>(
            cluster, executor, TableCache::Options{.timeout = options.request_timeout})) {}

  Cluster* const cluster;
  Executor* const executor;
  const Options options;
  const std::shared_ptr<GlobalIndex> global;
  const std::shared_ptr<TableCache> tables;
  ServerLoads loads;
};

}  // namespace tamis
