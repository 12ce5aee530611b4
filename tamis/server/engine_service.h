// EngineService: the engine's own operations for programs that use this server as their store
// (tamis/remote), as messages of protobuf: searches and aggregates, whose answers are streamed, and
// writes.
//
// A search whose client does not take its rows holds no thread, as a statement of SqlService. It is
// cancelled when the client disconnects, and by RunningStatements::Stop.
//
// Threads: safe.
#pragma once

#include <chrono>
#include <memory>

#include "tamis/server/metrics.h"
#include "tamis/server/routes.h"
#include "tamis/server/running_statements.h"
#include "tamis/server/write_numbers.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

class WorkerThreads;

class EngineService {
 public:
  // All must outlive this object. `max_time` is that of a search.
  EngineService(OpenedStore* store, WorkerThreads* workers, RunningStatements* statements,
                Metrics* metrics, std::chrono::milliseconds max_time)
      : store_(store),
        workers_(workers),
        statements_(statements),
        metrics_(metrics),
        max_time_(max_time) {}

  void Search(const Call& call);
  void Aggregate(const Call& call);
  void Write(const Call& call);
  // Takes the number of a request to write out of use (WithdrawWrite in remote.proto).
  void Withdraw(const Call& call);

 private:
  class Operation;
  class SearchOperation;
  class AggregateOperation;
  class WriteOperation;

  template <class One>
  void Start(const Call& call);
  // The schema that a request with this id and version may be carried out with.
  Result<SchemaPtr> SchemaFor(const std::string& table, uint32_t id, uint64_t version);

  OpenedStore* const store_;
  WorkerThreads* const workers_;
  RunningStatements* const statements_;
  Metrics* const metrics_;
  const std::chrono::milliseconds max_time_;
  WriteNumbers write_numbers_;
};

}  // namespace tamis::server
