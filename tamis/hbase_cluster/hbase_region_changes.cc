#include "tamis/hbase_cluster/hbase_region_changes.h"

#include <algorithm>

#include "tamis/base/backoff.h"
#include "tamis/hbase/filter.h"

namespace tamis {
namespace {

constexpr Backoff kPauses(std::chrono::milliseconds(100), std::chrono::seconds(2));

// Whether the refusal may end soon: the region is moving, or has to be compacted first. With
// kDeadlineExceeded, the change may go on.
bool IsNotYet(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kBusy;
}

}  // namespace

Workers::Step HBaseRegionChanges::Tries(std::string what, std::function<Status()> attempt) {
  return [this, what = std::move(what), attempt = std::move(attempt), end = std::optional<Time>(),
          pauses = kPauses]() mutable -> Result<std::optional<Duration>> {
    if (!end) end = executor_->Now() + patience_;
    const Status status = attempt();
    if (status.ok()) return std::optional<Duration>();
    if (!IsNotYet(status) || executor_->Now() >= *end) return status.WithContext(what);
    return std::optional(pauses.Next());
  };
}

Status HBaseRegionChanges::AfterCompaction(const std::vector<hbase::Region>& regions,
                                           Status refused) {
  if (IsNotYet(refused)) {
    for (const hbase::Region& region : regions) (void)client_->CompactRegion(region, false);
  }
  return refused;
}

Workers::Step HBaseRegionChanges::Split(RegionId id, std::string key) {
  return Tries("cannot split region " + id.ToString(),
               [this, id, key = std::move(key)]() -> Status {
                 TAMIS_ASSIGN_OR_RETURN(const hbase::Region region, regions_->Find(id));
                 return AfterCompaction({region}, SplitNow(region, key));
               });
}

// The master refuses a split with the same exception for every reason, so the region's server is
// asked first.
Status HBaseRegionChanges::SplitNow(const hbase::Region& region, std::string key) {
  const auto state = client_->StateOfSplit(region);
  if (state.status().code() == StatusCode::kDeadlineExceeded) {
    return Unavailable(state.status().message());  // nothing was begun: ask again
  }
  TAMIS_RETURN_IF_ERROR(state.status());
  if (!state->splittable) {
    return Unavailable("HBase has not compacted it since the last split or merge");
  }
  if (key.empty() && state->key.empty()) {
    TAMIS_ASSIGN_OR_RETURN(key, MiddleOf(region));
  }
  return client_->SplitRegion(region, key);
}

// Reads the keys to find the middle one. HBase found no split point on disk, so there are few keys.
Result<std::string> HBaseRegionChanges::MiddleOf(const hbase::Region& region) {
  hbase::Scan scan;
  scan.start_row = region.start;
  scan.stop_row = region.end;
  scan.filter = hbase::Filter::All({hbase::Filter::FirstKeyOnly(), hbase::Filter::KeysOnly()});
  scan.cache_blocks = false;
  const auto stream = client_->Scan(region.table, std::move(scan));
  std::vector<std::string> keys;
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const auto rows, stream->Next());
    if (rows.empty()) break;
    for (const hbase::Row& row : rows) keys.emplace_back(row.key());
  }
  const size_t middle = keys.size() / 2;
  if (keys.empty() || keys[middle] <= region.start) {
    return FailedPrecondition("it has too few rows to be split");
  }
  return keys[middle];
}

Workers::Step HBaseRegionChanges::Merge(RegionId id) {
  return Tries("cannot merge region " + id.ToString(), [this, id] { return TryMerge(id); });
}

Status HBaseRegionChanges::TryMerge(RegionId id) {
  TAMIS_ASSIGN_OR_RETURN(const hbase::Region left, regions_->Find(id));
  if (left.end.empty()) return FailedPrecondition("it is the last one of its table");
  TAMIS_ASSIGN_OR_RETURN(const auto regions, regions_->Of(left.table));
  const auto right = std::ranges::find(regions, left.end, [](const auto& r) { return r->start; });
  if (right == regions.end()) return Unavailable("hbase:meta has no region behind it now");
  const std::vector<hbase::Region> both = {left, **right};
  return AfterCompaction(both, client_->MergeRegions(both));
}

Workers::Step HBaseRegionChanges::Move(RegionId id, std::string server) {
  return Tries("cannot move region " + id.ToString(),
               [this, id, server = std::move(server)] { return TryMove(id, server); });
}

// If the target does not open the region at once, HBase opens it on another server and reports
// success. In that case the region is moved again.
Status HBaseRegionChanges::TryMove(RegionId id, const std::string& server) {
  TAMIS_ASSIGN_OR_RETURN(const hbase::Region region, regions_->Find(id));
  TAMIS_ASSIGN_OR_RETURN(const hbase::ClusterState state,
                         client_->Cluster(hbase::ClusterDetail::kServers));
  const auto target = std::ranges::find(
      state.servers, server, [](const auto& one) { return one.name.address.ToString(); });
  if (target == state.servers.end()) {
    return NotFound("there is no live region server \"" + server + "\"");
  }
  if (region.server == target->name) return Status::Ok();
  TAMIS_RETURN_IF_ERROR(client_->MoveRegion(region, target->name));
  TAMIS_ASSIGN_OR_RETURN(const hbase::Region now, regions_->Find(id));
  if (now.server == target->name) return Status::Ok();
  return Unavailable("HBase leaves it at " + now.server.ToString());
}

}  // namespace tamis
