#include "tamis/rocks/catalog.h"

#include <algorithm>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr char kFormatKey[] = "F";

std::string TableKey(uint32_t id) {
  std::string key = "T";
  PutBig32(&key, id);
  return key;
}

std::string RegionKey(uint64_t id) {
  std::string key = "R";
  PutBig64(&key, id);
  return key;
}

// The part of the catalog that a compaction needs to recognize garbage: the regions and tables of
// one moment. Ids are never reused and a region's range only shrinks, so an old view keeps too
// much, never too little.
struct GarbageView {
  uint64_t next_region_id;
  std::map<uint64_t, pb::RegionRecord> regions;
  std::map<uint32_t, TableSchema> tables;
  std::set<uint64_t> prepared;

  bool IsGarbage(std::string_view index_key) const {
    Reader reader(index_key);
    const uint64_t region_id = reader.Big64();
    const uint32_t index_id = reader.Big32();
    if (!reader.ok() || region_id >= next_region_id) return false;
    auto region = regions.find(region_id);
    if (region == regions.end()) return !prepared.contains(region_id);
    auto table = tables.find(region->second.table_id());
    if (table == tables.end()) return true;
    if (index_id >= table->second.next_index_id) return false;
    const IndexSpec* index = table->second.FindIndex(index_id);
    if (index == nullptr) return true;
    auto split = SplitIndexEntry(table->second, *index, reader.rest());
    if (!split.ok()) return false;
    const std::string_view key = split->second;
    return key < region->second.start() ||
           (!region->second.end().empty() && key >= region->second.end());
  }
};

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::Load(Store* store) {
  std::unique_ptr<Catalog> catalog(new Catalog(store));
  const std::string& directory = store->options().directory;
  std::string bytes;
  const rocksdb::Status found =
      store->db()->Get(rocksdb::ReadOptions(), store->meta(), kFormatKey, &bytes);
  if (found.IsNotFound()) {
    catalog->record_.set_format_version(kStoreFormatVersion);
    catalog->record_.set_next_region_id(1);
    catalog->record_.set_next_epoch(1);
    catalog->record_.set_next_table_id(1);
  } else if (!found.ok()) {
    return FromRocks(found, "read the catalog of store \"" + directory + "\"");
  } else if (!catalog->record_.ParseFromString(bytes)) {
    return DataLoss("cannot open store \"" + directory +
                    "\": its format record is damaged; restore the store from a backup");
  } else if (catalog->record_.format_version() != kStoreFormatVersion) {
    return FailedPrecondition("cannot open store \"" + directory + "\": it has format " +
                              std::to_string(catalog->record_.format_version()) +
                              ", this program reads format " + std::to_string(kStoreFormatVersion) +
                              "; use the version of tamis that wrote it");
  }
  std::unique_ptr<rocksdb::Iterator> it(
      store->db()->NewIterator(rocksdb::ReadOptions(), store->meta()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view key(it->key().data(), it->key().size());
    const std::string_view value(it->value().data(), it->value().size());
    if (key.starts_with("T")) {
      auto schema = ParseSchema(value);
      if (!schema.ok())
        return schema.status().WithContext("cannot open store \"" + directory + "\"");
      // Entries of dropped indexes of older stores may have any id that was given then.
      schema->next_index_id = std::max(schema->next_index_id, catalog->record_.next_index_id());
      catalog->tables_[schema->id] = std::move(*schema);
    } else if (key.starts_with("R")) {
      pb::RegionRecord region;
      if (!region.ParseFromArray(value.data(), static_cast<int>(value.size())) ||
          !RegionId::IsValid(region.id())) {
        return DataLoss("cannot open store \"" + directory +
                        "\": a region record is damaged; restore the store from a backup");
      }
      catalog->regions_[region.id()] = std::move(region);
    }
  }
  if (!it->status().ok()) {
    return FromRocks(it->status(), "read the catalog of store \"" + directory + "\"");
  }
  catalog->record_.set_openings(catalog->record_.openings() + 1);
  TAMIS_RETURN_IF_ERROR(catalog->Commit({}));
  return catalog;
}

std::vector<TableSchema> Catalog::Tables() const {
  std::lock_guard lock(mutex_);
  std::vector<TableSchema> tables;
  for (const auto& [id, table] : tables_) tables.push_back(table);
  return tables;
}

Result<TableSchema> Catalog::Table(const std::string& name) const {
  std::lock_guard lock(mutex_);
  for (const auto& [id, table] : tables_) {
    if (table.name == name) return table;
  }
  return NotFound("no table \"" + name + "\"");
}

std::optional<TableSchema> Catalog::Table(uint32_t id) const {
  std::lock_guard lock(mutex_);
  auto found = tables_.find(id);
  if (found == tables_.end()) return std::nullopt;
  return found->second;
}

bool Catalog::HasIndex(uint32_t table_id, uint32_t index_id) const {
  std::lock_guard lock(mutex_);
  auto table = tables_.find(table_id);
  return table != tables_.end() && table->second.FindIndex(index_id) != nullptr;
}

std::vector<pb::RegionRecord> Catalog::Regions() const {
  std::lock_guard lock(mutex_);
  std::vector<pb::RegionRecord> regions;
  for (const auto& [id, region] : regions_) regions.push_back(region);
  return regions;
}

size_t Catalog::region_count() const {
  std::lock_guard lock(mutex_);
  return regions_.size();
}

std::vector<pb::RegionRecord> Catalog::Regions(uint32_t table_id) const {
  std::vector<pb::RegionRecord> regions = Regions();
  std::erase_if(regions, [=](const auto& region) { return region.table_id() != table_id; });
  std::ranges::sort(regions, {}, [](const auto& region) { return region.start(); });
  return regions;
}

std::optional<pb::RegionRecord> Catalog::Region(uint64_t id) const {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(id);
  if (found == regions_.end()) return std::nullopt;
  return found->second;
}

template <class T>
T Catalog::TakeId(T (pb::StoreRecord::*next)() const, void (pb::StoreRecord::*set_next)(T)) {
  std::lock_guard lock(mutex_);
  const T id = (record_.*next)();
  (record_.*set_next)(id + 1);
  return id;
}

uint64_t Catalog::NewRegionId() {
  return TakeId(&pb::StoreRecord::next_region_id, &pb::StoreRecord::set_next_region_id);
}

uint64_t Catalog::NewEpoch() {
  return TakeId(&pb::StoreRecord::next_epoch, &pb::StoreRecord::set_next_epoch);
}

uint32_t Catalog::NewTableId() {
  return TakeId(&pb::StoreRecord::next_table_id, &pb::StoreRecord::set_next_table_id);
}

Result<uint64_t> Catalog::PrepareRegion() {
  std::lock_guard lock(mutex_);
  const uint64_t id = record_.next_region_id();
  record_.set_next_region_id(id + 1);
  prepared_.insert(id);
  // A file of entries that is taken into the store is on the disk before the log is.
  const Status written = CommitLocked({}, /*sync=*/true);
  if (written.ok()) return id;
  prepared_.erase(id);
  return written;
}

void Catalog::Discard(uint64_t prepared_id) {
  std::lock_guard lock(mutex_);
  if (prepared_.erase(prepared_id) == 0) return;
  PublishGarbage();
  store_->NoteGarbage(prepared_id);
}

uint64_t Catalog::openings() const {
  std::lock_guard lock(mutex_);
  return record_.openings();
}

Status Catalog::Commit(const Change& change) {
  std::lock_guard lock(mutex_);
  return CommitLocked(change);
}

// `sync`: the log reaches the disk, whatever the change is.
Status Catalog::CommitLocked(const Change& change, bool sync) {
  for (const pb::RegionRecord& region : change.put_regions) {
    if (!tables_.contains(region.table_id()) &&
        std::ranges::find(change.put_tables, region.table_id(), &TableSchema::id) ==
            change.put_tables.end()) {
      return Unavailable("the table was dropped meanwhile");
    }
  }
  std::vector<uint64_t> erase_regions = change.erase_regions;
  for (const auto& [id, region] : regions_) {
    if (std::ranges::find(change.erase_tables, region.table_id()) != change.erase_tables.end())
      erase_regions.push_back(id);
  }
  rocksdb::WriteBatch batch;
  batch.Put(store_->meta(), kFormatKey, record_.SerializeAsString());
  for (const TableSchema& table : change.put_tables) {
    batch.Put(store_->meta(), TableKey(table.id), SerializeSchema(table));
  }
  for (const uint32_t id : change.erase_tables) {
    batch.Delete(store_->meta(), TableKey(id));
    batch.DeleteRange(store_->rows(), RowPrefix(id), RowPrefix(id + 1));
  }
  for (const pb::RegionRecord& region : change.put_regions) {
    batch.Put(store_->meta(), RegionKey(region.id()), region.SerializeAsString());
  }
  for (const uint64_t id : erase_regions) batch.Delete(store_->meta(), RegionKey(id));
  // A compaction's files reach the disk: what it drops must be garbage there, too.
  const std::vector<uint64_t> garbage = GarbageOf(change, erase_regions);
  sync = sync || !garbage.empty() || store_->options().sync;
  TAMIS_RETURN_IF_ERROR(store_->Write(&batch, sync));

  for (const TableSchema& table : change.put_tables) tables_[table.id] = table;
  for (const uint32_t id : change.erase_tables) tables_.erase(id);
  for (const pb::RegionRecord& region : change.put_regions) {
    regions_[region.id()] = region;
    prepared_.erase(region.id());
  }
  for (const uint64_t id : erase_regions) regions_.erase(id);
  PublishGarbage();
  for (const uint64_t id : garbage) store_->NoteGarbage(id);
  return Status::Ok();
}

std::vector<uint64_t> Catalog::GarbageOf(const Change& change,
                                         const std::vector<uint64_t>& erased) const {
  std::vector<uint64_t> garbage = erased;
  for (const pb::RegionRecord& region : change.put_regions) {
    auto old = regions_.find(region.id());
    if (old != regions_.end() &&
        (old->second.start() != region.start() || old->second.end() != region.end())) {
      garbage.push_back(region.id());
    }
  }
  for (const TableSchema& table : change.put_tables) {
    auto old = tables_.find(table.id);
    if (old == tables_.end()) continue;
    const bool drops = std::ranges::any_of(old->second.indexes, [&](const IndexSpec& index) {
      return table.FindIndex(index.id) == nullptr;
    });
    if (!drops) continue;
    for (const auto& [id, region] : regions_) {
      if (region.table_id() == table.id) garbage.push_back(id);
    }
  }
  return garbage;
}

void Catalog::PublishGarbage() {
  auto view = std::make_shared<GarbageView>(
      GarbageView{record_.next_region_id(), regions_, tables_, prepared_});
  store_->SetGarbage(std::make_shared<Store::IsGarbage>(
      [view](std::string_view index_key) { return view->IsGarbage(index_key); }));
}

Result<bool> Catalog::MarkComplete(uint64_t region_id, uint64_t epoch, uint32_t index_id) {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(region_id);
  if (found == regions_.end() || found->second.epoch() != epoch) return false;
  pb::RegionRecord region = found->second;
  if (std::ranges::find(region.complete_indexes(), index_id) == region.complete_indexes().end()) {
    region.add_complete_indexes(index_id);
    Change change;
    change.put_regions.push_back(std::move(region));
    TAMIS_RETURN_IF_ERROR(CommitLocked(change));
  }
  return true;
}

}  // namespace tamis
