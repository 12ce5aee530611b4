// FilterClearer: a background job of a region server that clears the cells of filters which
// removals have emptied, and narrows the range of values: it looks into the index.
//
//   begin   the filter names the cells and the ends of the range to be looked at
//   search  a snapshot of the index is taken; for each cell one seek, and a few entries behind it:
//           what is not decided by then is occupied
//   end     the filter clears what was found empty and no write has registered for meanwhile
//
// Each of the three is a task of its own. IndexFilter says why this misses no row.
//
// Threads: safe.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class FilterClearer : public std::enable_shared_from_this<FilterClearer> {
 public:
  explicit FilterClearer(std::shared_ptr<const ServerContext> context)
      : context_(std::move(context)) {}

  // Looks at the index of the region after RegionServerOptions::clear_delay, and again while there
  // is more. Does nothing while that is still to come.
  void Enqueue(std::shared_ptr<Region> region, uint32_t index_id) noexcept;

  // Jobs that wait or run.
  size_t pending() const;
  void Abandon();

 private:
  struct Job {
    std::shared_ptr<Region> region;
    uint32_t index_id = 0;
    std::shared_ptr<IndexFilter> filter;
    SchemaPtr schema;
    std::shared_ptr<const rocksdb::Snapshot> snapshot;
    IndexFilter::Clearing clearing;
    IndexFilter::Cleared cleared;
    size_t undecided = 0;  // cells, and ranges, in all rounds
  };
  using JobPtr = std::shared_ptr<Job>;
  using Step = void (FilterClearer::*)(const JobPtr& job);

  void Continue(const JobPtr& job, Step step);
  void Run(const JobPtr& job, Step step) noexcept;
  void Begin(const JobPtr& job);
  void BeginRound(const JobPtr& job);
  void Search(const JobPtr& job);
  void End(const JobPtr& job);
  void Finish(const JobPtr& job) noexcept;

  void TakeSnapshot(Job* job) const;
  // The first encoded value of the entry; nullopt: it cannot be read. *inside says whether its row
  // lies in the region.
  std::optional<std::string> FirstOf(const Job& job, std::string_view entry, bool* inside) const;
  // Notes in job->cleared whether the cell is empty.
  void LookAt(Job* job, uint32_t cell, EntryCursor* entries) const;
  bool FindRange(Job* job, EntryCursor* entries) const;

  const std::shared_ptr<const ServerContext> context_;
  mutable std::mutex mutex_;
  std::deque<JobPtr> jobs_;
};

}  // namespace tamis
