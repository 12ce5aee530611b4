#include "tamis/hbase_cluster/index_reports.h"

#include <algorithm>
#include <set>

#include "tamis/cluster/error.h"
#include "tamis/hbase_cluster/indexed_table.h"

namespace tamis {
namespace {

std::string ServerOf(const hbase::Region& region) {
  return region.server.address.host.empty() ? std::string() : region.server.address.ToString();
}

const pb::IndexStatus* FindIndex(const pb::RegionStatus& region, uint32_t index_id) {
  const auto found = std::ranges::find(region.indexes(), index_id, &pb::IndexStatus::index_id);
  return found == region.indexes().end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> IndexReports::Servers() const {
  std::set<std::string> servers;
  for (const hbase::RegionPtr& region : regions_) servers.insert(ServerOf(*region));
  servers.erase("");
  return {servers.begin(), servers.end()};
}

void IndexReports::Add(const std::string& server, const Result<pb::StatusReply>& reply) {
  Report& report = reports_[server];
  if (!reply.ok()) {
    report.failure = reply.status();
    return;
  }
  for (const pb::RegionStatus& region : reply->regions()) {
    report.regions[region.region_id()] = region;
  }
}

// Two servers may report a region that moves meanwhile; the one in hbase:meta counts.
Result<const pb::RegionStatus*> IndexReports::Find(const std::string& server, RegionId id) const {
  const auto report = reports_.find(server);
  if (report == reports_.end()) return Unavailable("no server has it open");
  if (!report->second.failure.ok()) return report->second.failure;
  const auto region = report->second.regions.find(id.number());
  if (region != report->second.regions.end()) return &region->second;
  return Unavailable("its server does not serve it yet; if that lasts, the server's log says why");
}

Result<IndexProgress> IndexReports::Progress(uint32_t index_id) const {
  IndexProgress progress{.regions = regions_.size()};
  for (const hbase::RegionPtr& region : regions_) {
    TAMIS_ASSIGN_OR_RETURN(const RegionId id, RegionIdOf(region->encoded));
    IndexFailure failure{.region = id, .server = ServerOf(*region)};
    const auto reported = Find(failure.server, id);
    if (!reported.ok()) {
      failure.reason = reported.status();
      progress.Add(std::move(failure));
      continue;
    }
    const pb::IndexStatus* index = FindIndex(**reported, index_id);
    if (index != nullptr && index->published()) {
      ++progress.complete;
      progress.entries += index->entries();
    } else if ((*reported)->has_failure()) {
      const pb::BuildFailure& built = (*reported)->failure();
      failure.attempts = std::max<uint64_t>(1, built.attempts());
      failure.given_up = built.given_up();
      failure.reason = FailureOf(built.error());
      progress.Add(std::move(failure));
    }
  }
  return progress;
}

}  // namespace tamis
