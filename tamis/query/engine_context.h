// EngineContext: what the searches and the writes of one engine share.
#pragma once

#include "tamis/query/engine.h"
#include "tamis/query/table_cache.h"
#include "tamis/routing/global_index.h"

namespace tamis {

struct EngineContext {
  EngineContext(Cluster* cluster, Executor* executor, const Engine::Options& options,
                const GlobalIndex::Options& global_options)
      : cluster(cluster),
        executor(executor),
        options(options),
        global(std::make_shared<GlobalIndex>(global_options)),
        tables(cluster, executor, options.request_timeout) {}

  Cluster* const cluster;
  Executor* const executor;
  const Engine::Options options;
  const std::shared_ptr<GlobalIndex> global;
  TableCache tables;
};

}  // namespace tamis
