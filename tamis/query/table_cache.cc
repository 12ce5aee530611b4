#include "tamis/query/table_cache.h"

#include <algorithm>

#include "tamis/query/gather.h"

namespace tamis {

Result<SchemaPtr> TableCache::Table(const std::string& name) {
  SchemaPtr older;
  {
    std::lock_guard lock(mutex_);
    if (auto found = tables_.find(name); found != tables_.end()) {
      auto newest = versions_.find(found->second->id);
      if (newest == versions_.end() || newest->second <= found->second->version) {
        return found->second;
      }
      older = found->second;
    }
  }
  auto refreshed = RefreshTable(name);
  // An older schema serves, too, while the cluster cannot be asked.
  if (!refreshed.ok() && older && refreshed.status().code() != StatusCode::kNotFound) return older;
  return refreshed;
}

Result<SchemaPtr> TableCache::RefreshTable(const std::string& name) {
  auto tables = Gather<TableSchema>(executor_, timeout_, nullptr,
                                    {[&](std::function<void(Result<TableSchema>)> done) {
                                      cluster_->GetTable(name, std::move(done));
                                    }});
  if (!tables[0].ok()) return tables[0].status();
  auto schema = std::make_shared<const TableSchema>(std::move(*tables[0]));
  std::lock_guard lock(mutex_);
  tables_[name] = schema;
  return SchemaPtr(schema);
}

TableCache::Regions TableCache::KnownRegions(uint32_t table_id) const {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(table_id);
  return found == regions_.end() ? nullptr : found->second;
}

Result<TableCache::Regions> TableCache::RefreshRegions(const TableSchema& table,
                                                       const std::atomic<bool>* cancelled) {
  auto listed = Gather<std::vector<RegionInfo>>(
      executor_, timeout_, cancelled,
      {[&](std::function<void(Result<std::vector<RegionInfo>>)> done) {
        cluster_->ListRegions(table.name, {}, std::move(done));
      }});
  if (!listed[0].ok()) return listed[0].status();
  if (!listed[0]->empty() && listed[0]->front().table_id != table.id) {
    return NotFound("the table does not exist any more");
  }
  auto regions = std::make_shared<const std::vector<RegionInfo>>(std::move(*listed[0]));
  std::lock_guard lock(mutex_);
  regions_[table.id] = regions;
  return Regions(regions);
}

void TableCache::Heard(uint32_t table_id, uint64_t version) {
  std::lock_guard lock(mutex_);
  if (version > 0) {
    versions_[table_id] = std::max(versions_[table_id], version);
    return;
  }
  versions_.erase(table_id);
  regions_.erase(table_id);
  std::erase_if(tables_, [table_id](const auto& table) { return table.second->id == table_id; });
}

void TableCache::Forget(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto found = tables_.find(name);
  if (found == tables_.end()) return;
  regions_.erase(found->second->id);
  tables_.erase(found);
}

}  // namespace tamis
