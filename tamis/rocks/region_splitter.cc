#include "tamis/rocks/region_splitter.h"

#include <new>

#include "tamis/base/exception_status.h"
#include "tamis/base/waits_for_memory.h"
#include "tamis/rocks/row_cursor.h"

namespace tamis {

void RegionSplitter::Split(const std::shared_ptr<Region>& region, std::string key,
                           DoneCallback done) {
  if (key.empty()) {
    auto rows = MeasureRows(*region);
    if (!rows.ok()) return done(rows.status());
    key = std::move(rows->middle);
  }
  if (key.empty()) {
    return done(FailedPrecondition("cannot split region " +
                                   std::to_string(region->info().id.number()) +
                                   ": it has fewer than two rows; name a key to split at"));
  }
  const bool open = region->Quiesce([self = shared_from_this(), region, key, done] {
    done(WithoutExceptions([&] { return self->SplitAlone(region, key); }));
  });
  if (!open) done(regions_->NotOpen(region->info().id.number()));
}

void RegionSplitter::SplitIfGrown(const std::shared_ptr<Region>& region) {
  const uint64_t split_bytes = context_->options.split_bytes;
  if (split_bytes == 0 || region->size_bytes <= split_bytes ||
      region->split_requested.exchange(true)) {
    return;
  }
  try {
    context_->executor->Post([self = shared_from_this(), region] {
      try {
        self->MeasureAndSplit(region);
      } catch (const std::bad_alloc&) {
        region->split_requested = false;
      }
    });
  } catch (const std::bad_alloc&) {
    region->split_requested = false;
  }
}

Result<RegionSplitter::Rows> RegionSplitter::MeasureRows(const Region& region) const {
  const RegionInfo& info = region.info();
  rocksdb::ReadOptions read_options;
  read_options.fill_cache = false;
  const KeyRange keys{info.start, info.end};
  const std::string doing = "read rows to find a split key";
  Rows found;
  RowCursor all(*context_->store, info.table_id, keys, read_options);
  for (; all.Valid(); all.Next()) found.bytes += all.SizeBytes();
  TAMIS_RETURN_IF_ERROR(all.status(doing));
  uint64_t seen = 0;
  RowCursor half(*context_->store, info.table_id, keys, read_options);
  for (; half.Valid() && found.middle.empty(); half.Next()) {
    if (seen > 0 && seen * 2 >= found.bytes && half.key() > info.start) found.middle = half.key();
    seen += half.SizeBytes();
  }
  TAMIS_RETURN_IF_ERROR(half.status(doing));
  return found;
}

// Bytes written were counted; bytes that they overwrote or deleted were not.
void RegionSplitter::MeasureAndSplit(const std::shared_ptr<Region>& region) {
  auto rows = MeasureRows(*region);
  if (rows.ok()) region->size_bytes = rows->bytes;
  if (!rows.ok() || rows->bytes <= context_->options.split_bytes || rows->middle.empty()) {
    region->split_requested = false;
    return;
  }
  Split(region, rows->middle, [self = shared_from_this(), region](const Status& status) {
    region->split_requested = false;
    if (status.ok()) self->context_->on_split();
  });
}

Status RegionSplitter::SplitAlone(const std::shared_ptr<Region>& region, const std::string& key) {
  const RegionInfo& info = region->info();
  if (region->closed()) return Unavailable("the region was closed");
  if (key <= info.start || !info.Contains(key)) {
    return InvalidArgument("cannot split region " + std::to_string(info.id.number()) +
                           ": the key does not lie inside of it");
  }
  Catalog& catalog = *context_->catalog;
  const auto fence = context_->fences->Of(info.id.number());
  auto excluded = fence->Exclude();
  auto record = catalog.Region(info.id.number());
  if (!record.has_value() || record->epoch() != info.epoch)
    return Unavailable("the region has moved");
  pb::RegionRecord lower = *record, upper = *record;
  lower.set_epoch(catalog.NewEpoch());
  lower.set_end(key);
  upper.set_id(catalog.NewRegionId());
  upper.set_epoch(catalog.NewEpoch());
  upper.set_start(key);
  upper.clear_complete_indexes();
  // From here on the region is no more: its daughters have to be opened.
  const WaitsForMemory waits;
  TAMIS_RETURN_IF_ERROR(catalog.Commit({.put_regions = {lower, upper}}));
  fence->AdvanceExcluded(lower.epoch());
  excluded.unlock();
  context_->fences->Of(upper.id())->Advance(upper.epoch());
  regions_->Close(region.get());
  const uint64_t half = region->size_bytes / 2;
  for (const auto* daughter : {&lower, &upper}) {
    auto opened = regions_->Open(*daughter, region->acknowledge_not_before);
    if (!opened) continue;
    opened->size_bytes = half;
    context_->after_write(opened);  // it may still be too large
  }
  return Status::Ok();
}

}  // namespace tamis
