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
      events_(feed, index.id, region_id, epoch),
      rounds_(faults_) {}

bool IndexFilter::WantsRecount(const RecountRule& rule) const {
  std::lock_guard lock(mutex_);
  if (next_ || retired_) return false;
  if (!current_) return missing_;
  if (rounds_.is_stuck()) return true;
  if (current_->cell_map_version() != (cell_map_ == nullptr ? 0 : cell_map_->version())) {
    return true;
  }
  const uint64_t an_entry = current_->filter.bits_only() ? rule.an_entry_of_bits : rule.an_entry;
  const uint64_t most = std::max(rule.least, an_entry * current_->Entries(columns()));
  return current_->Ignored(columns()) >= most || sizing_.WantsOtherForm(*current_) ||
         sizing_.WantsOtherSize(*current_);
}

uint64_t IndexFilter::Add(std::span<const EntryKey> entries, Ticket* ticket) {
  std::lock_guard lock(mutex_);
  // Without a generation there is nothing to clear. One that begins later counts what is committed
  // by then, and no write is under way when it begins.
  const Ticket registered = current_ || next_ ? rounds_.Enter(entries, current_.get()) : 0;
  if (ticket != nullptr) *ticket = registered;
  DropSpoilt();
  if (next_ && next_->Add(entries)) Account();
  if (!current_) return 0;
  spoilt_ = !faults_.keep_spoilt_filter;  // where memory runs out
  const FilterGeneration::Changes changes = current_->Add(entries);
  if (changes.grown) Account();
  const uint64_t sequence = events_.TellAdded(*current_, changes);
  spoilt_ = false;
  return sequence;
}

void IndexFilter::Leave(Ticket ticket) {
  std::lock_guard lock(mutex_);
  rounds_.Leave(ticket);
}

void IndexFilter::DropSpoilt() {
  if (!spoilt_) return;
  rounds_.Forget();
  events_.TellDropped(*current_);
  current_.reset();
  spoilt_ = false;
  missing_ = true;
  Account();
}

void IndexFilter::Remove(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  if (current_) RemoveFromPublished(entries);
  if (next_) next_->Remove(entries);
}

void IndexFilter::RemoveFromPublished(std::span<const EntryKey> entries) {
  if (!entries.empty()) events_.TellRemoved(*current_, current_->Remove(entries));
}

uint64_t IndexFilter::WaitFor(std::span<const EntryKey> entries) {
  std::lock_guard lock(mutex_);
  DropSpoilt();
  return events_.WaitFor(current_.get(), entries);
}

// ---- Generations

void IndexFilter::Begin(FilterGeneration generation, bool hold_removals) {
  generation.number = ++generations_;
  next_.emplace(std::move(generation), hold_removals);
  rounds_.Mark();
}

void IndexFilter::BeginGeneration(bool hold_removals) {
  std::lock_guard lock(mutex_);
  FilterGeneration generation{.filter = sizing_.NewCounters(current_.get())};
  if (cell_map_ != nullptr) generation.cells.emplace(cell_map_);
  Begin(std::move(generation), hold_removals);
  rounds_.Cancel(current_.get());
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
  events_.TellPublished(next_->generation(), current_ != nullptr);
  // Nothing after this line takes memory: once it is reported, the generation is published.
  current_ = next_->Take();
  next_.reset();
  spoilt_ = missing_ = false;
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
  return (current_ ? current_->SizeBytes() : 0) + (next_ ? next()->SizeBytes() : 0);
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

bool IndexFilter::MayClear() const {
  if (!current_ || retired_ || spoilt_) return false;
  const bool complete = clearing_holds_ == 0 || faults_.clear_incomplete;
  return complete && !next_;
}

bool IndexFilter::WantsClearing() const {
  std::lock_guard lock(mutex_);
  return MayClear() && (current_->range_stale ||
                        (current_->cells.has_value() && !current_->cells->removed_from.empty()));
}

Clearing IndexFilter::BeginClearing(size_t max_cells) {
  std::lock_guard lock(mutex_);
  rounds_.Cancel(current_.get());
  return MayClear() ? rounds_.Begin(current_.get(), max_cells) : Clearing{};
}

void IndexFilter::EndClearing(const Clearing& clearing, const Cleared& cleared) {
  std::lock_guard lock(mutex_);
  if (!MayClear()) return;
  const auto outcome = rounds_.End(clearing, cleared, current_.get());
  if (!outcome.has_value()) return;
  ClearCells(outcome->cells);
  if (!outcome->narrows || Narrow(outcome->range)) current_->range_stale |= outcome->range_stale;
}

void IndexFilter::ClearCells(const std::vector<uint32_t>& cells) {
  if (cells.empty()) return;
  current_->as_restored = false;
  // A coordinator that gets no report goes on asking; so the bits are cleared first.
  for (const uint32_t cell : cells) current_->cells->occupied.Erase(cell);
  events_.TellCellsCleared(*current_, cells);
}

bool IndexFilter::Narrow(const std::optional<ValueRange>& range) {
  if (current_->range == range) return false;
  current_->as_restored = false;
  // Where memory runs out, a coordinator may know the range, and a later write not that it has to
  // wait until the coordinator knows a wider one.
  spoilt_ = !faults_.keep_spoilt_filter;
  current_->range = range;
  events_.TellRange(*current_);
  spoilt_ = false;
  return true;
}

void IndexFilter::HoldClearing() {
  std::lock_guard lock(mutex_);
  ++clearing_holds_;
  if (!faults_.clear_incomplete) rounds_.Cancel(current_.get());
}

void IndexFilter::ReleaseClearing() {
  std::lock_guard lock(mutex_);
  --clearing_holds_;
}

// ---- Questions

std::optional<pb::Projection> IndexFilter::Project(const pb::ColumnId& from,
                                                   size_t max_bytes) const {
  std::unique_lock lock(mutex_);
  if (!current_) return std::nullopt;
  // Every append for this filter happens under mutex_, so the bits are as of the feed's last
  // number.
  pb::Projection projection = events_.NewProjection(*current_);
  if (!from.cells()) {
    current_->ProjectLayers(from, max_bytes, &projection);
    return projection;
  }
  if (!current_->cells.has_value()) return std::nullopt;
  projection.set_cell_map(current_->cell_map_version());
  const CellSet occupied = current_->cells->occupied;
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
  return !current_ || current_->MayContain(entry);
}

void IndexFilter::ClearBitsForTest(const EntryKey& entry) {
  std::lock_guard lock(mutex_);
  if (current_) RemoveFromPublished(std::span(&entry, 1));
}

}  // namespace tamis
