#include "tamis/hbase_cluster/compaction_job.h"

namespace tamis {

using std::chrono::milliseconds;
using std::chrono::seconds;

CompactionJob::CompactionJob(Actions actions, Duration patience)
    : actions_(std::move(actions)), patience_(patience), pauses_(milliseconds(20), seconds(1)) {}

Result<std::optional<Duration>> CompactionJob::Step(const OnProgress& on_progress) {
  if (!last_news_) last_news_ = actions_.now();
  const auto regions = actions_.list();
  if (!regions.ok()) {
    if (!IsTransient(regions.status().code())) return regions.status();
    last_failure_ = regions.status();
  } else {
    uint64_t done = 0;
    for (const hbase::RegionPtr& region : *regions) {
      TAMIS_ASSIGN_OR_RETURN(const bool is_done, Advance(*region));
      if (is_done) on_progress(++done, regions->size());
    }
    if (done == regions->size()) return std::optional<Duration>();
  }
  if (actions_.now() - *last_news_ > patience_) {
    return Unavailable("some regions could not be compacted: " + last_failure_.message());
  }
  return std::optional(pauses_.Next());
}

Result<bool> CompactionJob::Advance(const hbase::Region& region) {
  if (done_.contains(region.encoded)) return true;
  if (region.server == hbase::ServerName()) {
    last_failure_ = Unavailable("region " + region.encoded + " is open nowhere");
    return false;
  }
  const auto begun = begun_.find(region.encoded);
  const bool is_here = begun != begun_.end() && begun->second == region.server;
  Status failure;
  if (!is_here) {
    failure = actions_.begin(region);
    if (failure.ok()) begun_[region.encoded] = region.server;
  } else {
    const Result<bool> compacting = actions_.is_compacting(region);
    failure = compacting.status();
    if (failure.ok() && !*compacting) done_.insert(region.encoded);
    if (!failure.ok()) begun_.erase(begun);  // the region may have been closed meanwhile
  }
  if (!failure.ok()) {
    if (!IsTransient(failure.code())) return failure;
    last_failure_ = failure;
    return false;
  }
  last_news_ = actions_.now();
  return done_.contains(region.encoded);
}

}  // namespace tamis
