// ThreadedWrites: random writes of a ThreadedRun, each of which is answered as its writer expects.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/cluster/random_rows.h"
#include "tests/cluster/threaded_run.h"
#include "tests/cluster/threaded_searches.h"

namespace tamis {

class ThreadedWrites {
 public:
  ThreadedWrites(ThreadedRun* run, ThreadedSearches* searches)
      : run_(*run), searches_(*searches), progress_(run->progress()) {}

  // A batch of rows of the client's own. Returns the keys that were acknowledged.
  std::vector<int64_t> WriteSome(int client, Engine& engine, Random& random, RandomRows& rows);
  // A row that others write at the same time.
  void WriteShared(Engine& engine, Random& random, RandomRows& rows);
  void WriteBySql(int client, SqlClient& sql, RandomRows& rows);

  // The state of the row, as its only writer sees it; nullopt when several states are possible.
  std::optional<RowState> Sure(int64_t key) const;
  // Notes the answer of a write that has begun. True when the write was done.
  bool TakeAnswer(int64_t key, uint64_t begun, const RandomWrite& write, const Status& status);

 private:
  ThreadedRun& run_;
  ThreadedSearches& searches_;
  RunProgress& progress_;
};

}  // namespace tamis
