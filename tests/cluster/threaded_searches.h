// ThreadedSearches: searches of a ThreadedRun by any of its coordinators, each judged by what was
// written meanwhile.
//
// Threads: safe.
#pragma once

#include <cstdint>

#include "tests/cluster/answer.h"
#include "tests/cluster/threaded_run.h"

namespace tamis {

class ThreadedSearches {
 public:
  explicit ThreadedSearches(ThreadedRun* run) : run_(*run), progress_(run->progress()) {}

  // By an engine.
  void Check(Engine& engine, SearchOptions options);
  void SearchAny(Engine& engine, Random& random, RandomRows& rows);
  // For a row that was just acknowledged.
  void SearchFor(int64_t key, Engine& engine, RandomRows& rows);
  void SearchBySql(SqlClient& sql, Random& random, RandomRows& rows);
  // By the coordinator in a process of its own. REQUIRES: there is one.
  void SearchByProcess(const SearchOptions& options);
  // By the coordinator whose network can be cut. REQUIRES: there is one.
  void SearchFromAfar(const SchemaPtr& schema, RandomRows& rows, Duration timeout);

  // A condition that the row meets as it stands, or by which it would be found.
  Predicate ProbeFor(int64_t key, RandomRows& rows) const;
  static Predicate IdIs(int64_t key);
  // Some state of the row, for what is drawn near it.
  RowState Near(int64_t key) const { return run_.log().Now(key).back(); }

 private:
  void JudgeSql(const Answer& answer, const WriteLog::Mark& mark, const char* how,
                const SearchOptions& options);

  ThreadedRun& run_;
  RunProgress& progress_;
};

}  // namespace tamis
