// IndexBuilder: the background jobs of a region server that make an index of a region complete, one
// at a time, in small steps.
//
//   backfill   the region's id has no entries yet (upper daughter, merged region, new index): each
//   row is
//              locked, read, and its entry written and counted when it is not there
//   recount    the entries stand, the filter does not (region opened) or has grown inexact: a new
//              generation is begun while no write is under way, and the entries of a snapshot taken
//              at that moment are counted into it; removals wait until the end
//
// Threads: safe.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tamis/rocks/region.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class IndexBuilder : public std::enable_shared_from_this<IndexBuilder> {
 public:
  explicit IndexBuilder(std::shared_ptr<const ServerContext> context)
      : context_(std::move(context)) {}

  // Completes the index, or counts it anew. Once is enough while it waits.
  void Enqueue(std::shared_ptr<Region> region, uint32_t index_id);

  // Jobs that wait or run.
  size_t pending() const;

 private:
  struct Job {
    std::shared_ptr<Region> region;
    uint32_t index_id = 0;
    SchemaPtr schema;
    std::shared_ptr<IndexFilter> filter;
    std::string cursor;  // backfill: the last row key done; recount: the last entry
    std::shared_ptr<const rocksdb::Snapshot> snapshot;
  };
  using JobPtr = std::shared_ptr<Job>;

  void Start(JobPtr job);
  void Backfill(JobPtr job);
  void WriteEntries(JobPtr job, std::shared_ptr<const std::vector<std::string>> keys);
  Status WriteLocked(Job* job, const std::vector<std::string>& keys);
  void CompleteBackfill(JobPtr job);
  void BeginRecount(JobPtr job);
  void Recount(JobPtr job);
  void Finish(JobPtr job, bool done);

  const std::shared_ptr<const ServerContext> context_;
  mutable std::mutex mutex_;
  std::deque<JobPtr> waiting_;
  JobPtr running_;
};

}  // namespace tamis
