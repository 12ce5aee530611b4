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

// The pointers keep everything alive that they stand on.
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

  // While set, each search leaves its Explain here, in the order in which they end. From number
  // `most_searches` on, the last one is a sum of numbers.
  std::vector<Explain>* searches = nullptr;
  size_t most_searches = SIZE_MAX;
  // With `searches`: their outcomes in regions are noted, for so many regions in all.
  size_t explained_regions = 0;
  // The Explain of a search found no memory there.
  bool searches_lost = false;
  // How many statements are being explained, one for the sake of the other.
  int explains = 0;
  // The failure of the last method of a table, whose code SQLite does not hand on. A program that
  // wants it clears it before it prepares a statement.
  Status failure;
  // False: servers send rows, never groups of them.
  bool groups = true;
  // The number of groups that are sorted for GROUP BY; with more, the rows are read in the order.
  size_t most_gathered_groups = GatheredGroups::kMostCombinations;
  // While true nothing is written: a statement is run for its searches only.
  bool dry_run = false;

  // The tables as they were declared to SQLite, by name.
  std::map<std::string, SchemaPtr> declared;
  // The write buffers of these tables.
  std::set<const WriteBuffer*> write_buffers;

  // kFailedPrecondition, with what to do, while no store is open.
  Status CheckOpen() const;
  // Writes wait for COMMIT, or for the end of the statement.
  bool HasUnsentWrites() const;
  // Leaves the Explain in `searches`, if they are set.
  void Note(Explain search);

  // Ask the cluster, change it, and wait for the answer for as long as one waits for such things,
  // or until `cancelled`.
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
  // However long that takes: regions are opened again one after the other.
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
  // The progress of the index once each region has built it, however long that takes.
  Result<IndexProgress> AwaitIndex(const std::string& table, const std::string& index);

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
