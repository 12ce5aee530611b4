// RemoteCoordinator: a coordinator in another process, behind `tamis serve`, which routes searches
// and writes and explains how.
//
// A search is asked again, within its time, as long as none of its rows was given out; afterwards
// a cut answer is an error. A write is never sent again once a server may have carried it out: its
// outcome is unknown then, kDeadlineExceeded (numbered_writes.h).
//
// Threads: safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/query/coordinator.h"
#include "tamis/remote/numbered_writes.h"
#include "tamis/remote/remote_cluster.h"

namespace tamis {

class RemoteCoordinator final : public Coordinator {
 public:
  RemoteCoordinator(std::shared_ptr<HttpClient> client, std::shared_ptr<RemoteCluster> cluster,
                    Executor* executor, Duration write_timeout);
  ~RemoteCoordinator() override;

  Cluster& cluster() override { return *cluster_; }
  Executor& executor() override { return *executor_; }
  TableCache& tables() override { return *tables_; }

  std::unique_ptr<FoundRows> Search(SchemaPtr schema, SearchOptions options) override;
  std::optional<Result<Aggregates>> Aggregate(const SchemaPtr& schema,
                                              const AggregateOptions& options) override;
  std::vector<Status> Apply(SchemaPtr schema, const std::vector<Write>& writes,
                            const std::atomic<bool>* cancelled) override;

  bool WaitUntilRouted(const TableSchema& schema, Duration timeout) override;
  Engine::Knowledge knowledge() override;          // zeros while the server cannot be reached
  Engine::Totals totals() override { return {}; }  // the server counts its own work
  // None: what the server knows of single regions is not told.
  std::vector<uint64_t> RoutedRegions(const TableSchema& /*schema*/) override { return {}; }

 private:
  struct Batch;
  void Send(const TableSchema& schema, Batch* batch, Time deadline,
            const std::atomic<bool>* cancelled, std::vector<Status>* results);

  const std::shared_ptr<HttpClient> client_;
  const std::shared_ptr<RemoteCluster> cluster_;
  Executor* const executor_;
  const Duration write_timeout_;
  const std::shared_ptr<TableCache> tables_;
  NumberedWrites writes_;
};

}  // namespace tamis
