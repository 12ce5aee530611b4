#include "tamis/rocks/open_regions.h"

#include <algorithm>

#include "tamis/base/coding.h"
#include "tamis/base/waits_for_memory.h"
#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/row_cursor.h"

namespace tamis {
namespace {

constexpr Duration kClearAgainAfter = std::chrono::seconds(1);

}  // namespace

std::vector<std::shared_ptr<Region>> OpenRegions::All() const {
  std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<Region>> regions;
  for (const auto& [id, region] : regions_) regions.push_back(region);
  return regions;
}

std::vector<std::shared_ptr<Region>> OpenRegions::OfTable(uint32_t table_id) const {
  std::vector<std::shared_ptr<Region>> regions = All();
  std::erase_if(regions, [&](const auto& region) { return region->info().table_id != table_id; });
  return regions;
}

std::shared_ptr<Region> OpenRegions::Find(uint64_t region_id) const {
  std::shared_lock lock(mutex_);
  auto found = regions_.find(region_id);
  return found == regions_.end() ? nullptr : found->second;
}

Status OpenRegions::NotOpen(uint64_t region_id) const {
  return Unavailable("region " + std::to_string(region_id) + " is not open on server " +
                     context_->name);
}

std::shared_ptr<Region> OpenRegions::Open(const pb::RegionRecord& record, Time not_before) {
  const WaitsForMemory waits;
  const auto schema = context_->catalog->Table(record.table_id());
  if (!schema.has_value()) return nullptr;  // dropped meanwhile
  RegionInfo info{.id = RegionId(record.id()),
                  .name = std::to_string(record.id()),
                  .epoch = record.epoch(),
                  .table_id = record.table_id(),
                  .start = record.start(),
                  .end = record.end(),
                  .server = context_->name};
  auto shared_schema = std::make_shared<const TableSchema>(*schema);
  auto region = std::make_shared<Region>(
      info, shared_schema, context_->fences->Of(info.id.number()), context_->executor.get());
  Region::Indexes made;
  {
    auto fence = region->fence().Enter(info.epoch);
    if (!fence.owns_lock()) return nullptr;  // an old order: the region is elsewhere by now
    made = MakeIndexes(info, *schema, {}, record.complete_indexes());
  }
  region->SetSchema(shared_schema, std::move(made));
  region->acknowledge_not_before = not_before;
  region->size_bytes = RowBytes(info);
  context_->feed->TellTable(info.table_id, schema->version);
  region->acknowledge_after = TellOpened(*region);
  // Restores filters before any other thread sees the region and may begin to count.
  const auto indexes = region->indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.entries_complete) state.filter->Publish();
  }
  {
    std::unique_lock lock(mutex_);
    regions_[info.id.number()] = region;
  }
  BuildMissing(region);
  FollowCatalog(region);
  return region;
}

// A schema change between reading the schema and publishing the region did not find the region
// here.
void OpenRegions::FollowCatalog(const std::shared_ptr<Region>& region) {
  auto schema = context_->catalog->Table(region->info().table_id);
  if (!schema.has_value() || schema->version == region->schema()->version) return;
  region->Quiesce([self = shared_from_this(), region,
                   schema = std::make_shared<const TableSchema>(*std::move(schema))] {
    self->Follow(region, schema);
    self->context_->feed->TellTable(schema->id, schema->version);
  });
}

uint64_t OpenRegions::RowBytes(const RegionInfo& info) const {
  const Store& store = *context_->store;
  if (context_->options.estimate_region_bytes) {
    return store.ApproximateRowBytes(info.table_id, info.start, info.end);
  }
  uint64_t bytes = 0;
  RowCursor rows(store, info.table_id, {info.start, info.end});
  for (; rows.Valid(); rows.Next()) bytes += rows.SizeBytes();
  return bytes;
}

uint64_t OpenRegions::Close(Region* region) {
  const WaitsForMemory waits;
  pb::Event event;
  event.set_kind(pb::Event::REGION_CLOSED);
  event.set_region_id(region->info().id.number());
  event.set_epoch(region->info().epoch);
  // First what may throw: a region whose close could not be reported stays open.
  const uint64_t sequence = context_->feed->Append(std::move(event));
  region->Close();
  std::unique_lock lock(mutex_);
  regions_.erase(region->info().id.number());
  return sequence;
}

void OpenRegions::Follow(const std::shared_ptr<Region>& region, SchemaPtr schema) {
  const WaitsForMemory waits;
  ReplaceSchema(region.get(), std::move(schema));
  BuildMissing(region);
}

// The filters and states of the indexes of a schema; what `old` has goes on.
Region::Indexes OpenRegions::MakeIndexes(
    const RegionInfo& info, const TableSchema& schema, const Region::Indexes& old,
    const google::protobuf::RepeatedField<uint32_t>& complete) {
  Region::Indexes indexes;
  for (const IndexSpec& index : schema.indexes) {
    if (auto found = old.find(index.id); found != old.end()) {
      found->second.filter->SetCellMap(index.cell_map);
      indexes.insert(*found);
      continue;
    }
    Region::IndexState state;
    state.filter =
        std::make_shared<IndexFilter>(context_->feed.get(), index, info.id.number(), info.epoch,
                                      context_->options.faults, context_->filter_budget);
    state.filter->SetCellMap(index.cell_map);
    state.entries_complete = std::ranges::find(complete, index.id) != complete.end();
    if (!state.entries_complete) {
      // Entries of a backfill that did not come to its end are written again, so that what stands
      // and what is counted agree.
      state.entries_cleared = ClearEntries(info.id.number(), index.id).ok();
      state.filter->BeginGeneration(/*hold_removals=*/false);
    } else if (auto snapshot = context_->snapshots->Take(info.id.number(), index.id)) {
      // Published once the region is reported. When it is damaged, the entries are counted.
      (void)state.filter->RestoreGeneration(*snapshot);
    }
    indexes.emplace(index.id, std::move(state));
  }
  return indexes;
}

Status OpenRegions::ClearEntries(uint64_t region_id, uint32_t index_id) {
  const std::string prefix = IndexPrefix(region_id, index_id);
  EntryCursor entries(*context_->store, prefix);
  entries.Seek("");
  if (!entries.Valid() && entries.status().ok()) return Status::Ok();
  rocksdb::WriteBatch batch;
  batch.DeleteRange(context_->store->index(), prefix, PrefixEnd(prefix));
  return context_->store->Write(&batch);
}

void OpenRegions::ReplaceSchema(Region* region, SchemaPtr schema) {
  if (region->closed() || region->schema()->version >= schema->version) return;
  const auto old = region->indexes();
  auto fence = region->fence().Enter(region->info().epoch);
  if (!fence.owns_lock()) return;
  auto indexes = MakeIndexes(region->info(), *schema, *old, {});
  for (const auto& [index_id, state] : *old) {
    if (indexes.contains(index_id)) continue;
    pb::Event event;
    state.filter->Retire();
    event.set_kind(pb::Event::INDEX_DROPPED);
    event.set_region_id(region->info().id.number());
    event.set_epoch(region->info().epoch);
    event.set_index_id(index_id);
    // Puts do not count values of the index any more. So none is acknowledged before coordinators
    // have applied the drop and exclude by the index no longer.
    region->acknowledge_after = context_->feed->Append(std::move(event));
  }
  region->SetSchema(std::move(schema), std::move(indexes));
}

void OpenRegions::BuildMissing(const std::shared_ptr<Region>& region) {
  bool again = false;
  const auto indexes = region->indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.filter->published()) {
      // By another cell map than the schema's, for example.
      if (state.filter->WantsRecount(context_->options.recount))
        builder_->Enqueue(region, index_id);
      continue;
    }
    if (state.entries_complete || state.entries_cleared) {
      builder_->Enqueue(region, index_id);
    } else {
      again = true;
    }
  }
  if (!again) return;
  context_->executor->PostAfter(kClearAgainAfter, [self = shared_from_this(), region] {
    region->Quiesce([self, region] { self->ClearAgain(region); });
  });
}

// Runs alone in the region, if the store could not clear the old entries when the index was added
// to the region. It also removes entries that puts have written since; the backfill writes these
// again.
void OpenRegions::ClearAgain(const std::shared_ptr<Region>& region) {
  if (region->closed()) return;
  const WaitsForMemory waits;
  const RegionInfo& info = region->info();
  const auto indexes = region->indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.entries_complete || state.entries_cleared) continue;
    auto fence = region->fence().Enter(info.epoch);
    if (!fence.owns_lock()) return;
    const Status cleared = ClearEntries(info.id.number(), index_id);
    if (!cleared.ok()) {
      region->NoteFailure(index_id, cleared, /*given_up=*/false);
      continue;
    }
    state.filter->BeginGeneration(/*hold_removals=*/false);
    region->SetEntriesCleared(index_id);
  }
  BuildMissing(region);
}

uint64_t OpenRegions::TellOpened(const Region& region) {
  pb::Event event;
  event.set_kind(pb::Event::REGION_OPENED);
  event.set_region_id(region.info().id.number());
  event.set_epoch(region.info().epoch);
  event.set_table_id(region.info().table_id);
  event.set_start(region.info().start);
  event.set_end(region.info().end);
  return context_->feed->Append(std::move(event));
}

}  // namespace tamis
