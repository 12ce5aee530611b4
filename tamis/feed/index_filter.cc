#include "tamis/feed/index_filter.h"

#include <algorithm>
#include <utility>

#include "tamis/base/hash.h"

namespace tamis {

IndexFilter::IndexFilter(FilterFeed* feed, const IndexSpec& index, uint64_t region_id,
                         uint64_t epoch, const Faults& faults, std::shared_ptr<FilterBudget> budget)
    : index_(index),
      faults_(faults),
      sizing_(index_, faults_, std::move(budget)),
      published_(feed, index.id, region_id, epoch, faults_),
      rounds_(&published_, faults_) {}

bool IndexFilter::WantsRecount(const RecountRule& rule) const {
  std::lock_guard lock(mutex_);
  if (next_ || retired_) return false;
  if (!published_) return missing_;
  if (rounds_.is_stuck()) return true;
  if (published_->cell_map_version() != (cell_map_ == nullptr ? 0 : cell_map_->version())) {
    return true;
  }
  const uint64_t an_entry = published_->filter.bits_only() ? rule.an_entry_of_bits : rule.an_entry;
  const uint64_t most = std::max(rule.least, an_entry * published_->Entries(columns()));
  return published_->Ignored(columns()) >= most || sizing_.WantsOtherForm(*published_) ||
         sizing_.WantsOtherSize(*published_);
}

uint64_t IndexFilter::Add(std::span<const EntryKey> entries, Ticket* ticket) {
  std::lock_guard lock(mutex_);
  // Without a generation there is nothing to clear. One that begins later counts what is committed
  // by then, and no write is under way when it begins.
  const Ticket registered = published_ || next_ ? rounds_.Enter(entries) : 0;
  if (ticket != nullptr) *ticket = registered;
  DropSpoilt();
  if (next_ && next_->Add(entries)) Account();
  if (!published_) return 0;
  const PublishedGeneration::Added added = published_.Add(entries);
  if (added.grown) Account();
  return added.sequence;
}

void IndexFilter::Leave(Ticket ticket) {
  std::lock_guard lock(mutex_);
  rounds_.Leave(ticket);
}

void IndexFilter::DropSpoilt() {
  if (!published_.spoilt()) return;
  rounds_.Forget();
  published_.Drop();
  missing_ = true;
  Account();
}

void IndexFilter::Remove(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  if (published_) published_.Remove(entries);
  if (next_) next_->Remove(entries);
}

uint64_t IndexFilter::WaitFor(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  DropSpoilt();
  return published_.WaitFor(entries);
}

// ---- Generations

void IndexFilter::Begin(FilterGeneration generation, bool hold_removals) {
  generation.number = ++generations_;
  next_.emplace(std::move(generation), hold_removals);
  rounds_.Mark();
}

void IndexFilter::BeginGeneration(bool hold_removals) {
  std::lock_guard lock(mutex_);
  FilterGeneration generation{.filter = sizing_.NewCounters(published_.get())};
  if (cell_map_ != nullptr) generation.cells.emplace(cell_map_);
  Begin(std::move(generation), hold_removals);
  rounds_.Cancel();
  Account();
}

void IndexFilter::CountExisting(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  if (next_ && next_->CountExisting(entries)) Account();
}

void IndexFilter::Retire() {
  std::lock_guard lock(mutex_);
  retired_ = true;
}

void IndexFilter::Publish() {
  std::lock_guard lock(mutex_);
  if (!next_ || retired_) return;
  next_->RemoveHeld();
  published_.Publish(next_->mutable_generation());
  next_.reset();
  missing_ = false;
  rounds_.ForgetMarked();
  rounds_.Forget();
  Account();
}

void IndexFilter::AbandonGeneration() {
  std::lock_guard lock(mutex_);
  next_.reset();
  Account();
}

std::optional<std::string> IndexFilter::Snapshot() const {
  return Published([](const FilterGeneration& it) { return it.Serialize(); });
}

bool IndexFilter::RestoreGeneration(std::string_view bytes) {
  std::shared_ptr<const CellMap> map;
  {
    std::lock_guard lock(mutex_);
    map = cell_map_;
  }
  auto generation = FilterGeneration::Deserialize(bytes, index_, map, faults_);
  if (!generation.has_value()) return false;
  std::lock_guard lock(mutex_);
  if (!sizing_.HasRoomFor(generation->filter)) return false;
  Begin(*std::move(generation), /*hold_removals=*/false);
  Account();
  return true;
}

size_t IndexFilter::SizeBytes() const {
  std::lock_guard lock(mutex_);
  return (published_ ? published_->SizeBytes() : 0) + (next_ ? next()->SizeBytes() : 0);
}

bool IndexFilter::building() const {
  std::lock_guard lock(mutex_);
  return next_.has_value();
}

// ---- Clearing

void IndexFilter::SetCellMap(std::shared_ptr<const CellMap> map) {
  std::lock_guard lock(mutex_);
  cell_map_ = std::move(map);
}

bool IndexFilter::WantsClearing() const {
  std::lock_guard lock(mutex_);
  return MayClear() && rounds_.IsWanted();
}

Clearing IndexFilter::BeginClearing(size_t max_cells) {
  std::lock_guard lock(mutex_);
  rounds_.Cancel();
  return MayClear() ? rounds_.Begin(max_cells) : Clearing{};
}

void IndexFilter::EndClearing(const Clearing& clearing, const Cleared& cleared) {
  std::lock_guard lock(mutex_);
  if (MayClear()) rounds_.End(clearing, cleared);
}

void IndexFilter::HoldClearing() {
  std::lock_guard lock(mutex_);
  rounds_.Hold();
}

void IndexFilter::ReleaseClearing() {
  std::lock_guard lock(mutex_);
  rounds_.Release();
}

// ---- Questions

std::optional<pb::Projection> IndexFilter::Project(const pb::ColumnId& from,
                                                   size_t max_bytes) const {
  std::unique_lock lock(mutex_);
  if (!published_) return std::nullopt;
  // Every append for this filter happens under mutex_, so the bits are as of the feed's last
  // number.
  pb::Projection projection = published_.NewProjection();
  if (!from.cells()) {
    published_->ProjectLayers(from, max_bytes, &projection);
    return projection;
  }
  if (!published_->cells.has_value()) return std::nullopt;
  projection.set_cell_map(published_->cell_map_version());
  const CellSet occupied = published_->cells->occupied;
  lock.unlock();  // a large set is encoded while writes go on
  FilterGeneration::ProjectCells(occupied, from, max_bytes, &projection);
  return projection;
}

std::optional<uint64_t> IndexFilter::CountBound(std::string_view prefix) const {
  return Published(
      [&](const FilterGeneration& it) { return it.filter.CountBound(Hash(prefix, index_.seed)); });
}

bool IndexFilter::MayContain(const EntryKey& entry) const {
  std::lock_guard lock(mutex_);
  return !published_ || published_->MayContain(entry);
}

void IndexFilter::ClearBitsForTest(const EntryKey& entry) {
  std::lock_guard lock(mutex_);
  if (published_) published_.Remove(std::span(&entry, 1));
}

}  // namespace tamis
