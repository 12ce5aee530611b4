// Coordinator: the interface of what carries out the calls of an Engine: in this process, over the
// stubs of region servers (local_coordinator.h), or in another one, over HTTP (tamis/remote). Its
// members are those of the engine (engine.h).
//
// Threads: as engine.h says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/query/engine.h"
#include "tamis/query/table_cache.h"

namespace tamis {

// The rows of one search, as RowStream has them. Threads: exclusive access.
class FoundRows {
 public:
  virtual ~FoundRows() = default;
  virtual Result<std::optional<RowGroup>> Next() = 0;
  virtual void StopGrouping() = 0;
  virtual const Explain& explain() = 0;
};

class Coordinator {
 public:
  virtual ~Coordinator() = default;
  // See Engine. One without leases of its own has nothing to leave.
  virtual void Leave(Duration /*patience*/) {}

  virtual Cluster& cluster() = 0;
  virtual Executor& executor() = 0;
  virtual TableCache& tables() = 0;

  virtual std::unique_ptr<FoundRows> Search(SchemaPtr schema, SearchOptions options) = 0;
  // nullopt: the engine adds up the rows of a search.
  virtual std::optional<Result<Aggregates>> Aggregate(const SchemaPtr& /*schema*/,
                                                      const AggregateOptions& /*options*/) {
    return std::nullopt;
  }
  virtual std::vector<Status> Apply(SchemaPtr schema, const std::vector<Write>& writes,
                                    const std::atomic<bool>* cancelled) = 0;

  virtual bool WaitUntilRouted(const TableSchema& schema, Duration timeout) = 0;
  virtual Engine::Knowledge knowledge() = 0;
  virtual Engine::Totals totals() = 0;
  virtual std::vector<uint64_t> RoutedRegions(const TableSchema& schema) = 0;
  // A coordinator that does not know answers false.
  virtual bool LeavesOut(uint32_t /*table_id*/, const RoutingTerm& /*asked*/,
                         const std::string& /*key*/) {
    return false;
  }
};

}  // namespace tamis
