// SqlService: runs SQL statements of clients, POST /v1/sql.
//
//   {"sql": "SELECT ... WHERE a = ?", "parameters": [1], "timeout_ms": 5000, "max_rows": 100,
//    "explain": true, "explain_regions": true}
//
// With explain_regions each search also lists its regions by outcome, for tables with at most
// kExplainedRegions regions.
// The answer is one JSON document, or with "Accept: application/x-ndjson" a stream of lines: the
// columns, one line for each row, and a last line, {"complete": true, ...} or {"error": {...}}. A
// stream without such a last line was cut.
//
// A statement whose client does not take its rows holds no thread: it is suspended between two
// steps until the rows before have been sent. It is cancelled when the client disconnects, when its
// time is over, and by Stop.
//
// Threads: safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "tamis/server/deadlines.h"
#include "tamis/server/exchange.h"
#include "tamis/server/metrics.h"
#include "tamis/server/running_statements.h"
#include "tamis/server/sql_database.h"

namespace tamis::server {

class WorkerThreads;

class SqlService {
 public:
  struct Options {
    bool may_write = false;
    int max_statements = 64;  // at once, with those that wait for their clients
    std::chrono::milliseconds max_time = std::chrono::seconds(60);  // and without a timeout_ms
    uint64_t max_rows = 1'000'000'000;
    uint64_t max_document_bytes = uint64_t{32} << 20;  // bytes of an answer that is not streamed
  };

  SqlService(std::shared_ptr<OpenedStore> store, WorkerThreads* workers,
             RunningStatements* statements, Metrics* metrics, Options options);
  // REQUIRES: all statements have ended (RunningStatements::Stop).
  ~SqlService();

  void Answer(ExchangePtr exchange);

 private:
  class Statement;

  WorkerThreads* const workers_;
  RunningStatements* const statements_;
  Metrics* const metrics_;
  const Options options_;
  SqlDatabases databases_;
  Deadlines deadlines_;
};

}  // namespace tamis::server
