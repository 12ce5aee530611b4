#include "tamis/rocks/region_splitter.h"

#include <new>

#include "tamis/base/exception_status.h"
#include "tamis/base/waits_for_memory.h"
#include "tamis/rocks/entry_repair.h"
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
  Run(std::make_shared<Order>(Order{region, std::move(key), std::move(done)}),
      &RegionSplitter::PrepareCopy);
}

void RegionSplitter::Run(const OrderPtr& order, Step step) noexcept {
  try {
    (this->*step)(order);
  } catch (...) {
    End(order, StatusOfException());
  }
}

void RegionSplitter::RunAlone(const OrderPtr& order, Step step) {
  const bool open =
      order->region->Quiesce([self = shared_from_this(), order, step] { self->Run(order, step); });
  if (!open) End(order, regions_->NotOpen(order->region->info().id.number()));
}

void RegionSplitter::End(const OrderPtr& order, const Status& status) {
  order->region->DropEntryCopy(order->copy.lock());
  order->done(status);
}

// ---- The copy of the upper half's entries. Where it fails the region is split all the same.

void RegionSplitter::PrepareCopy(const OrderPtr& order) {
  Region& region = *order->region;
  const RegionInfo& info = region.info();
  if (order->key <= info.start || !info.Contains(order->key)) {
    return End(order, InvalidArgument("cannot split region " + std::to_string(info.id.number()) +
                                      ": the key does not lie inside of it"));
  }
  if (context_->options.copied_change_bytes == 0)
    return RunAlone(order, &RegionSplitter::SplitAlone);
  const auto copy = EntryCopy::Prepare(*context_, region, order->key);
  if (!copy.ok() || !*copy) return RunAlone(order, &RegionSplitter::SplitAlone);
  // Another split is copying already: this one closes the region, which ends the other.
  if (!region.SetEntryCopy(*copy)) return RunAlone(order, &RegionSplitter::SplitAlone);
  order->copy = *copy;
  RunAlone(order, &RegionSplitter::BeginCopy);
}

void RegionSplitter::BeginCopy(const OrderPtr& order) {
  Region& region = *order->region;
  const auto copy = order->copy.lock();
  if (region.closed() || !copy) return End(order, RegionMoved());
  {
    const auto excluded = region.fence().Exclude();
    copy->Begin(region);
  }
  context_->executor->Post(
      [self = shared_from_this(), order] { self->Run(order, &RegionSplitter::Copy); });
}

void RegionSplitter::Copy(const OrderPtr& order) {
  Region& region = *order->region;
  const auto copy = order->copy.lock();
  if (region.closed() || !copy) return End(order, RegionMoved());
  const auto more = copy->Copy(context_->options.build_rows);
  if (more.ok() && *more) {
    return context_->executor->Post(
        [self = shared_from_this(), order] { self->Run(order, &RegionSplitter::Copy); });
  }
  if (!more.ok() || !copy->TakeIn().ok()) {
    region.DropEntryCopy(copy);
    order->copy.reset();  // this function still owns it
  }
  RunAlone(order, &RegionSplitter::SplitAlone);
}

// ---- The split

void RegionSplitter::SplitAlone(const OrderPtr& order) { End(order, TrySplit(order)); }

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

Status RegionSplitter::TrySplit(const OrderPtr& order) {
  Region* region = order->region.get();
  const std::string& key = order->key;
  const RegionInfo& info = region->info();
  if (region->closed()) return Unavailable("the region was closed");
  Catalog& catalog = *context_->catalog;
  const auto fence = context_->fences->Of(info.id.number());
  auto excluded = fence->Exclude();
  auto record = catalog.Region(info.id.number());
  if (!record.has_value() || record->epoch() != info.epoch)
    return Unavailable("the region has moved");
  auto copy = order->copy.lock();
  if (copy && !copy->Complete().ok()) copy.reset();
  pb::RegionRecord lower = *record, upper = *record;
  lower.set_epoch(catalog.NewEpoch());
  lower.set_end(key);
  upper.set_id(copy ? copy->daughter_id() : catalog.NewRegionId());
  upper.set_epoch(catalog.NewEpoch());
  upper.set_start(key);
  upper.clear_complete_indexes();
  // From here on the region is no more: its daughters have to be opened.
  const WaitsForMemory waits;
  TAMIS_RETURN_IF_ERROR(catalog.Commit({.put_regions = {lower, upper}}));
  fence->AdvanceExcluded(lower.epoch());
  if (copy) {
    for (const uint32_t index_id : record->complete_indexes()) {
      if (copy->Has(index_id)) upper.add_complete_indexes(index_id);
    }
    // A commit of its own: the one above may be on the disk although it failed, and the region then
    // goes on without keeping the copied entries. If this one fails, the next opening of the store
    // makes the entries again.
    (void)catalog.Commit({.put_regions = {upper}});
  }
  excluded.unlock();
  context_->fences->Of(upper.id())->Advance(upper.epoch());
  regions_->Close(region);
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
