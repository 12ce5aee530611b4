#include "tamis/hbase_cluster/region_directory.h"

namespace tamis {

Result<std::vector<hbase::RegionPtr>> RegionDirectory::Of(const std::string& hbase_table) {
  TAMIS_ASSIGN_OR_RETURN(auto regions, client_->Regions(hbase_table));
  cluster_->known_regions().Learn(hbase_table, {}, regions);
  return regions;
}

Result<std::vector<hbase::RegionPtr>> RegionDirectory::OfAllTables() {
  TAMIS_ASSIGN_OR_RETURN(const auto tables, cluster_->tables().Readable());
  std::vector<hbase::RegionPtr> regions;
  for (const IndexedTable& table : tables) {
    const auto its = Of(table.description.name);
    if (its.status().code() == StatusCode::kNotFound) continue;  // dropped meanwhile
    TAMIS_RETURN_IF_ERROR(its.status());
    regions.insert(regions.end(), its->begin(), its->end());
  }
  return regions;
}

Result<hbase::Region> RegionDirectory::Find(RegionId id) {
  const auto look = [&](const std::string& hbase_table) -> Result<hbase::RegionPtr> {
    TAMIS_ASSIGN_OR_RETURN(const auto regions, Of(hbase_table));
    for (const hbase::RegionPtr& region : regions) {
      const auto its = RegionIdOf(region->encoded);
      if (its.ok() && *its == id) return region;
    }
    return hbase::RegionPtr();
  };
  // Look in the table that last had the region, then in all tables.
  if (const auto known = cluster_->known_regions().Find(id)) {
    const auto region = look(known->table);
    if (region.ok() && *region) return **region;
  }
  TAMIS_ASSIGN_OR_RETURN(const auto tables, cluster_->tables().Readable());
  for (const IndexedTable& table : tables) {
    const auto region = look(table.description.name);
    if (region.status().code() == StatusCode::kNotFound) continue;  // dropped meanwhile
    if (!region.ok()) return region.status();
    if (*region) return **region;
  }
  return NotFound("there is none");
}

}  // namespace tamis
