// Session: what one SQLite connection knows of a store.
//
// Threads: as the connection, one at a time; `cancelled` may be set from anywhere.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/query/engine.h"
#include "tamis/query/explain.h"
#include "tamis/sql/gathered_groups.h"

namespace tamis {

class WriteBuffer;

// An open store. The pointers keep alive everything that the two objects refer to.
struct SessionStore {
  std::shared_ptr<Engine> engine;
  std::shared_ptr<ClusterAdmin> admin;
};
// Opens the store of that name.
using OpenStore = std::function<Result<SessionStore>(const std::string& name)>;

struct Session {
  OpenStore open;
  std::shared_ptr<Engine> engine;       // null until a store is open
  std::shared_ptr<ClusterAdmin> admin;  // null: no table can be made here
  std::atomic<bool> cancelled{false};

  // While set, each search appends its Explain here when it ends. After `most_searches` elements
  // the numbers of further searches are added to the last element.
  std::vector<Explain>* searches = nullptr;
  size_t most_searches = SIZE_MAX;
  // With `searches`: each Explain lists the outcome in each region, for at most this many regions
  // of all searches together.
  size_t explained_regions = 0;
  // An Explain was not appended, since memory did not suffice.
  bool searches_lost = false;
  // The number of nested tamis_explain calls.
  int explains = 0;
  // The last failure of a method of a virtual table; SQLite passes on its message but not its code.
  // A program that reads it clears it before it prepares a statement.
  Status failure;
  // Why SQLite computes the aggregates of the statement that runs; empty where it does not. It is
  // noted with the statement's first search, and then cleared.
  std::string aggregated_by_sqlite;
  // False: servers send rows, never groups of them.
  bool groups = true;
  // The greatest number of groups that are sorted here for GROUP BY; if there are more, the rows
  // are read in the order instead.
  size_t most_gathered_groups = GatheredGroups::kMostCombinations;
  // While true nothing is written: a statement is run for its searches only.
  bool dry_run = false;

  // The tables as they were declared to SQLite, by name.
  std::map<std::string, SchemaPtr> declared;
  // The write buffers of these tables.
  std::set<const WriteBuffer*> write_buffers;

  // kFailedPrecondition, with what to do, while no store is open.
  Status CheckOpen() const;
  // Whether a column has another name now than the declared one. It was dropped, and its old name
  // may belong to another column.
  bool HasDroppedColumns() const;
  // Writes wait for COMMIT, or for the end of the statement.
  bool HasUnsentWrites() const;
  // Leaves the Explain in `searches`, if they are set.
  void Note(Explain search);

  // Ask and Change call the cluster or its administration, and wait for the answer at most 60 s
  // (kPatience), or until `cancelled`.
  template <class T, class Call>
  Result<T> Ask(Call&& call) {
    return AwaitResult<T>(&engine->executor(), Patience(),
                          [&](auto done) { call(engine->cluster(), std::move(done)); });
  }
  template <class T, class Call>
  Result<T> Change(Call&& call) {
    TAMIS_RETURN_IF_ERROR(CheckAdmin());
    return AwaitResult<T>(&engine->executor(), Patience(),
                          [&](auto done) { call(*admin, std::move(done)); });
  }
  // Waits without a limit, or until `cancelled`: regions are opened again one after the other.
  template <class T, class Call>
  Result<T> ChangeAtLength(Call&& call) {
    TAMIS_RETURN_IF_ERROR(CheckAdmin());
    return AwaitResult<T>(&engine->executor(), {.cancelled = &cancelled},
                          [&](auto done) { call(*admin, std::move(done)); });
  }
  // For calls that return only a Status.
  template <class Call>
  Status Do(Call&& call) {
    TAMIS_RETURN_IF_ERROR(CheckAdmin());
    return AwaitStatus(&engine->executor(), Patience(),
                       [&](auto done) { call(*admin, std::move(done)); });
  }
  template <class Call>
  Status DoAtLength(Call&& call) {
    TAMIS_RETURN_IF_ERROR(CheckAdmin());
    return AwaitStatus(&engine->executor(), {.cancelled = &cancelled},
                       [&](auto done) { call(*admin, std::move(done)); });
  }
  // The schemas of all tables.
  Result<std::vector<TableSchema>> Tables();
  // The table, made unless it is there (define_table.h).
  Result<SchemaPtr> Define(const TableSchema& definition);
  // The job once it has ended, however long that takes.
  Result<JobInfo> Run(JobSpec spec);
  // The progress of the index once each region has built it, however long that takes, unless a
  // region keeps failing (await_index.h, also for `show`).
  Result<IndexProgress> AwaitIndex(const std::string& table, const std::string& index,
                                   const std::function<void(const IndexProgress&)>& show = {});

  // A rough number of rows, for cost estimates; asked of the cluster at most every few seconds.
  double EstimatedRows(const TableSchema& schema);

 private:
  struct Estimate {
    double rows = 0;
    Time taken{};
  };
  Status CheckAdmin() const;
  Wait Patience() const;

  std::map<uint32_t, Estimate> estimates_;
};

}  // namespace tamis
