// IndexBuilder: the background jobs of a region server that make an index of a region complete, one
// at a time, in small steps.
//
//   backfill   the region's id has no entries yet (upper daughter, merged region, new index): each
//              row is locked, read, and its entry written and counted when it is not there. One
//              pass over the rows completes all indexes of the region that wait for one
//   recount    the entries stand, the filter does not (region opened) or has grown inexact: a new
//              generation is begun while no write is under way, and the entries of a snapshot taken
//              at that moment are counted into it; removals wait until the end
//   rebuild    ordered for an index that should be complete but may be damaged (Rebuild): a
//              backfill writes the missing entries, a sweep removes those that no row gives, a
//              recount follows. Writes and searches go on meanwhile
//
// Threads: safe.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/rocks/entry_repair.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class IndexBuilder : public std::enable_shared_from_this<IndexBuilder> {
 public:
  explicit IndexBuilder(std::shared_ptr<const ServerContext> context)
      : context_(std::move(context)) {}

  // Completes the index, or counts it again. Does nothing while such a job of the index waits.
  void Enqueue(std::shared_ptr<Region> region, uint32_t index_id);
  // Makes entries and filter agree with the rows, whatever they were. Calls done at the end. A
  // failure is passed to done, and the job is not tried again.
  void Rebuild(std::shared_ptr<Region> region, uint32_t index_id, DoneCallback done);

  // Jobs that wait or run.
  size_t pending() const;

  // The server was killed: nothing runs any more. Callers that wait for a rebuild are not answered;
  // a caller may own the server that owns this object.
  void Abandon();

 private:
  struct Job {
    std::shared_ptr<Region> region;
    uint32_t index_id = 0;
    SchemaPtr schema;
    std::shared_ptr<IndexFilter> filter;
    std::vector<RepairedIndex> targets;  // backfill: the indexes that the pass completes
    std::string cursor;  // backfill: the last row key done; sweep, recount: the last entry
    std::shared_ptr<const std::vector<std::string>> locked;  // keys of rows, while they are
    std::vector<std::string> suspects;  // sweep: the entries that are being compared
    std::shared_ptr<const rocksdb::Snapshot> snapshot;
    std::vector<DoneCallback> rebuilt;  // callers that wait for the index to be rebuilt
    bool holds_clearing = false;        // clearing of the filter is held
    Status given_up;                    // why the index stays as it is; not tried again
  };
  using JobPtr = std::shared_ptr<Job>;
  using Step = void (IndexBuilder::*)(JobPtr job);

  // Runs the step in a task of its own.
  void Continue(JobPtr job, Step step);
  // A step that throws (std::bad_alloc) ends the job, which is done again later.
  void Run(JobPtr job, Step step) noexcept;
  void RunLocked(JobPtr job, Step step) noexcept;
  void Add(std::shared_ptr<Region> region, uint32_t index_id, DoneCallback rebuilt);
  void Start(JobPtr job);
  // Ids of the indexes that the job completes.
  static std::vector<uint32_t> IndexesOf(const Job& job);
  // The index of the job, and those of other jobs that wait for the same pass, which end with it.
  std::vector<RepairedIndex> TakeTargets(const Job& job);
  void Backfill(JobPtr job);
  void WriteEntries(JobPtr job);
  void CompleteBackfill(JobPtr job);
  void Sweep(JobPtr job);
  void RemoveForeign(JobPtr job);
  void Unlock(const Job& job) noexcept;
  void BeginRecount(JobPtr job);
  void BeginRecountAlone(JobPtr job);
  void Recount(JobPtr job);
  void CountAgainToFit(const std::shared_ptr<Region>& region, const RepairedIndex& target);
  void Finish(JobPtr job, const Status& status) noexcept;
  // Finishes a job that would fail again each time; the region keeps the reason.
  void GiveUp(JobPtr job, Status reason);
  // The region keeps the failure of an index that it needs, and forgets it when a job succeeds.
  void NoteOutcome(const Job& job, const Status& status);
  void TryAgainLater(const Job& job);

  const std::shared_ptr<const ServerContext> context_;
  mutable std::mutex mutex_;
  std::deque<JobPtr> waiting_;
  JobPtr running_;
};

}  // namespace tamis
