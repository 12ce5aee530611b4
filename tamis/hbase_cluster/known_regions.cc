#include "tamis/hbase_cluster/known_regions.h"

#include "tamis/hbase_cluster/indexed_table.h"

namespace tamis {

void KnownRegions::Learn(const std::string& table, const KeyRange& range,
                         const std::vector<hbase::RegionPtr>& regions) {
  std::lock_guard lock(mutex_);
  auto& known = tables_[table];
  std::vector<hbase::RegionPtr> older;
  for (const auto& [start, region] : known) {
    const KeyRange keys{region->start, region->end};
    bool replaced = range.Overlaps(keys);
    for (const auto& newer : regions) {
      if (replaced) break;
      replaced = keys.Overlaps({newer->start, newer->end});
    }
    if (replaced) older.push_back(region);
  }
  for (const auto& region : older) Erase(region);
  for (const auto& region : regions) {
    const auto id = RegionIdOf(region->encoded);
    if (!id.ok()) continue;
    known[region->start] = region;
    ids_[*id] = region;
    if (!region->server.address.host.empty()) {
      servers_[region->server.address.ToString()][*id] = region;
    }
  }
}

bool KnownRegions::Forget(const hbase::RegionPtr& region) {
  std::lock_guard lock(mutex_);
  const auto id = RegionIdOf(region->encoded);
  const auto known = id.ok() ? ids_.find(*id) : ids_.end();
  if (known == ids_.end() || known->second != region) return false;
  Erase(region);
  return true;
}

void KnownRegions::ForgetTable(const std::string& table) {
  std::lock_guard lock(mutex_);
  const auto found = tables_.find(table);
  if (found == tables_.end()) return;
  const auto regions = found->second;
  for (const auto& [start, region] : regions) Erase(region);
  tables_.erase(table);
}

void KnownRegions::Erase(const hbase::RegionPtr& region) {
  const auto id = RegionIdOf(region->encoded);
  auto& known = tables_[region->table];
  const auto found = known.find(region->start);
  if (found != known.end() && found->second->encoded == region->encoded) known.erase(found);
  if (!id.ok()) return;
  ids_.erase(*id);
  const auto server = servers_.find(region->server.address.ToString());
  if (server == servers_.end()) return;
  server->second.erase(*id);
  if (server->second.empty()) servers_.erase(server);
}

std::vector<hbase::RegionPtr> KnownRegions::At(const std::string& server,
                                               const std::vector<RegionId>& first,
                                               size_t most) const {
  std::lock_guard lock(mutex_);
  std::vector<hbase::RegionPtr> regions;
  const auto found = servers_.find(server);
  if (found == servers_.end()) return regions;
  std::set<RegionId> taken;
  for (const RegionId id : first) {
    const auto region = found->second.find(id);
    if (regions.size() < most && region != found->second.end() && taken.insert(id).second) {
      regions.push_back(region->second);
    }
  }
  for (const auto& [id, region] : found->second) {
    if (regions.size() >= most) break;
    if (taken.insert(id).second) regions.push_back(region);
  }
  return regions;
}

uint64_t KnownRegions::CountAt(const std::string& server) const {
  std::lock_guard lock(mutex_);
  const auto found = servers_.find(server);
  return found == servers_.end() ? 0 : found->second.size();
}

hbase::RegionPtr KnownRegions::Find(RegionId id) const {
  std::lock_guard lock(mutex_);
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : found->second;
}

}  // namespace tamis
