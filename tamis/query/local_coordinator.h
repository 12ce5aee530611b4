// LocalCoordinator: a coordinator in this process. It polls the region servers and sends searches
// and writes to them.
//
// Threads: safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/query/coordinator.h"
#include "tamis/query/poller.h"
#include "tamis/query/query_context.h"

namespace tamis {

class LocalCoordinator final : public Coordinator {
 public:
  LocalCoordinator(Cluster* cluster, Executor* executor, const Engine::Options& options);
  ~LocalCoordinator() override;

  void Leave(Duration patience) override;

  Cluster& cluster() override { return *context_->cluster; }
  Executor& executor() override { return *context_->executor; }
  TableCache& tables() override { return *context_->tables; }

  std::unique_ptr<FoundRows> Search(SchemaPtr schema, SearchOptions options) override;
  std::vector<Status> Apply(SchemaPtr schema, const std::vector<Write>& writes,
                            const std::atomic<bool>* cancelled) override;

  bool WaitUntilRouted(const TableSchema& schema, Duration timeout) override;
  Engine::Knowledge knowledge() override;
  Engine::Totals totals() override;
  std::vector<uint64_t> RoutedRegions(const TableSchema& schema) override;
  bool LeavesOut(uint32_t table_id, const RoutingTerm& asked, const std::string& key) override;

 private:
  const std::shared_ptr<QueryContext> context_;
  std::shared_ptr<Poller> poller_;  // null: it keeps no filters
  std::mutex totals_mutex_;
  Engine::Totals totals_;  // sums of writes
};

}  // namespace tamis
