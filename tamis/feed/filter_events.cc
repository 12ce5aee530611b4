#include "tamis/feed/filter_events.h"

#include <algorithm>

namespace tamis {
namespace {

// Stands for the layer where a bit is that of a cell.
constexpr uint32_t kCells = 1u << 30;

uint64_t CellBit(uint32_t cell) { return FilterGeneration::BitName(kCells, cell); }

// Sets the range of an event or a projection.
template <class Message>
void SetRange(const std::optional<ValueRange>& range, Message* message) {
  if (!range.has_value()) return;
  message->set_has_range(true);
  message->set_min(range->first);
  message->set_max(range->second);
}

}  // namespace

pb::Event FilterEvents::NewEvent(pb::Event::Kind kind, const FilterGeneration& generation) const {
  pb::Event event;
  event.set_kind(kind);
  event.set_region_id(region_id_);
  event.set_epoch(epoch_);
  event.set_index_id(index_id_);
  event.set_generation(generation.number);
  return event;
}

uint64_t FilterEvents::TellAdded(const FilterGeneration& current,
                                 const FilterGeneration::Changes& changes) {
  uint64_t sequence = 0;
  if (changes.grown) {
    pb::Event event = NewEvent(pb::Event::LAYER_ADDED, current);
    event.set_layers(static_cast<uint32_t>(current.filter.layers()));
    sequence = feed_.Append(std::move(event));
  }
  if (!changes.flips.empty() || !changes.cells.empty()) {
    pb::Event event = NewEvent(pb::Event::FLIPS, current);
    event.mutable_flips()->Add(changes.flips.begin(), changes.flips.end());
    for (const uint32_t cell : changes.cells) event.add_cells(cell * 2 + 1);
    sequence = feed_.Append(std::move(event));
    for (const uint64_t flip : changes.flips) AddPending(flip / 2, sequence);
    for (const uint32_t cell : changes.cells) AddPending(CellBit(cell), sequence);
  }
  if (changes.widened) sequence = TellRange(current);
  return sequence;
}

void FilterEvents::AddPending(uint64_t bit, uint64_t sequence) {
  pending_[bit] = sequence;
  pending_order_.emplace_back(sequence, bit);
}

uint64_t FilterEvents::TellRange(const FilterGeneration& current) {
  pb::Event event = NewEvent(pb::Event::RANGE_WIDENED, current);
  SetRange(current.range, &event);
  const uint64_t sequence = feed_.Append(std::move(event));
  told_ranges_.push_back({sequence, current.range});
  return sequence;
}

void FilterEvents::TellRemoved(const FilterGeneration& current,
                               const FilterGeneration::Flips& flips) {
  if (flips.empty()) return;
  pb::Event event = NewEvent(pb::Event::FLIPS, current);
  event.mutable_flips()->Add(flips.begin(), flips.end());
  feed_.Append(std::move(event));
}

void FilterEvents::TellCellsCleared(const FilterGeneration& current,
                                    const std::vector<uint32_t>& cells) {
  pb::Event event = NewEvent(pb::Event::FLIPS, current);
  for (const uint32_t cell : cells) event.add_cells(cell * 2);
  feed_.Append(std::move(event));
}

void FilterEvents::TellPublished(const FilterGeneration& next, bool replaces) {
  pb::Event event = NewEvent(pb::Event::INDEX_COMPLETE, next);
  const SplitGeometry& geometry = next.filter.geometry();
  event.mutable_geometry()->set_slices(geometry.slices);
  event.mutable_geometry()->set_slice_positions(geometry.slice_positions);
  event.set_layers(static_cast<uint32_t>(next.filter.layers()));
  if (next.cells.has_value()) {
    event.set_cell_map(next.cells->map->version());
    event.set_cell_count(next.cells->map->cells());
  }
  SetRange(next.range, &event);
  // Coordinators that have not applied the publication exclude nothing by this range.
  std::optional<ValueRange> range = next.range;
  const uint64_t sequence = feed_.Append(std::move(event));
  // Nothing after this line takes memory: once the event is appended, the generation is published.
  if (replaces) replaced_ = sequence;
  ForgetTold();
  acknowledged_range_ = std::move(range);
}

void FilterEvents::TellDropped(const FilterGeneration& current) {
  replaced_ = feed_.Append(NewEvent(pb::Event::INDEX_DROPPED, current));
  ForgetTold();
}

void FilterEvents::ForgetTold() {
  pending_.clear();
  pending_order_.clear();
  told_ranges_.clear();
  acknowledged_range_.reset();
}

uint64_t FilterEvents::WaitFor(const FilterGeneration* current, std::span<const EntryKey> entries) {
  ForgetAcknowledged();
  uint64_t sequence = replaced_;
  if (current == nullptr) return sequence;
  for (const EntryKey& entry : entries) {
    for (const uint64_t hash : entry.hashes) {
      if (pending_.empty()) break;
      const auto layer = current->filter.FindLayer(hash);
      if (!layer.has_value()) continue;  // a later write has removed the value again
      const SplitGeometry& geometry = current->filter.geometry();
      for (uint32_t slice = 0; slice < geometry.slices; ++slice) {
        const uint64_t position = geometry.Position(hash, slice);
        sequence = std::max(sequence, ToldAt(FilterGeneration::BitName(*layer, position)));
      }
    }
    if (current->cells.has_value() && !pending_.empty()) {
      sequence = std::max(sequence, ToldAt(CellBit(current->cells->map->CellOf(entry.first))));
    }
    sequence = std::max(sequence, RangeToldAt(entry.first));
  }
  return sequence;
}

// The number of the event that reported the set bit; 0: there is none that is not acknowledged.
uint64_t FilterEvents::ToldAt(uint64_t bit) const {
  const auto told = pending_.find(bit);
  return told == pending_.end() ? 0 : told->second;
}

// The number of the event from which on every reported range covers the
// value; 0: so does the range that they have applied. Ranges are narrowed, too.
uint64_t FilterEvents::RangeToldAt(std::string_view first) const {
  bool covered = Covers(acknowledged_range_, first);
  uint64_t since = 0;
  for (const ToldRange& told : told_ranges_) {
    const bool covers = Covers(told.range, first);
    if (covers && !covered) since = told.sequence;
    covered = covers;
  }
  return covered ? since : 0;  // a later write has removed the value again, where it is not covered
}

void FilterEvents::ForgetAcknowledged() {
  const uint64_t floor = feed_.AcknowledgedFloor();
  while (!pending_order_.empty() && pending_order_.front().first <= floor) {
    const auto [sequence, bit] = pending_order_.front();
    auto it = pending_.find(bit);
    if (it != pending_.end() && it->second == sequence) pending_.erase(it);
    pending_order_.pop_front();
  }
  while (!told_ranges_.empty() && told_ranges_.front().sequence <= floor) {
    acknowledged_range_ = std::move(told_ranges_.front().range);
    told_ranges_.pop_front();
  }
  if (replaced_ <= floor) replaced_ = 0;
}

pb::Projection FilterEvents::NewProjection(const FilterGeneration& current) const {
  pb::Projection projection;
  projection.set_region_id(region_id_);
  projection.set_epoch(epoch_);
  projection.set_index_id(index_id_);
  projection.set_generation(current.number);
  projection.set_as_of(feed_.Last());
  SetRange(current.range, &projection);
  return projection;
}

}  // namespace tamis
