// ThreadedPlainClient: a client of HBase that has no part in any of Tamis: it writes rows of its
// own, which searches must find, and reads them.
//
// Threads: Run is the work of one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/cluster/threaded_run.h"
#include "tests/cluster/threaded_searches.h"
#include "tests/cluster/threaded_writes.h"

namespace tamis {

class ThreadedPlainClient {
 public:
  ThreadedPlainClient(ThreadedRun* run, ThreadedSearches* searches, ThreadedWrites* writes)
      : run_(*run), searches_(*searches), writes_(*writes), progress_(run->progress()) {}

  // Writes and reads until the end of the operations; at once where there is no plain client.
  void Run();
  // At rest: its rows by key and by every index, from every coordinator.
  void FindItsRows();

 private:
  bool WriteRow(int64_t key, Random& random, RandomRows& rows);  // true when it was done
  void ReadRow(int64_t key);
  bool HasStoodAs(int64_t key, const RowState& read) const;

  ThreadedRun& run_;
  ThreadedSearches& searches_;
  ThreadedWrites& writes_;
  RunProgress& progress_;
  std::map<int64_t, std::vector<RowState>> history_;  // how its rows may ever have stood
};

}  // namespace tamis
