// Session: what one SQLite connection knows of a store.
//
// Threads: as the connection, one at a time; `cancelled` may be set from anywhere.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tamis/query/engine.h"
#include "tamis/query/explain.h"

namespace tamis {

// Opens the store of that name. The pointer keeps everything alive that the engine stands on.
using OpenStore = std::function<Result<std::shared_ptr<Engine>>(const std::string& name)>;

struct Session {
  OpenStore open;
  std::shared_ptr<Engine> engine;  // null until a store is open
  std::atomic<bool> cancelled{false};

  // While set, each search leaves its Explain here, in the order in which they end.
  std::vector<Explain>* searches = nullptr;
  // While true nothing is written: a statement is run for its searches only.
  bool dry_run = false;

  // kFailedPrecondition, with what to do, while no store is open.
  Status CheckOpen() const;

  // A rough number of rows, for cost estimates; asked of the cluster at most every few seconds.
  double EstimatedRows(const TableSchema& schema);

 private:
  struct Estimate {
    double rows = 0;
    Time taken{};
  };
  std::map<uint32_t, Estimate> estimates_;
};

// Runs an asynchronous call of the cluster and waits for it.
template <class T, class Call>
Result<T> AwaitResult(Engine* engine, Call&& call) {
  return Await<Result<T>>(&engine->executor(), [&](auto done) { call(engine->cluster(), done); });
}
template <class Call>
Status AwaitStatus(Engine* engine, Call&& call) {
  return Await<Status>(&engine->executor(), [&](auto done) { call(engine->cluster(), done); });
}

}  // namespace tamis
