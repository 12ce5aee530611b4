#include "tamis/feed/published_generation.h"

#include <utility>

namespace tamis {

PublishedGeneration::Added PublishedGeneration::Add(std::span<const EntryKey> entries) {
  spoilt_ = !faults_.keep_spoilt_filter;  // where memory runs out
  const FilterGeneration::Changes changes = current_->Add(entries);
  const uint64_t sequence = events_.TellAdded(*current_, changes);
  spoilt_ = false;
  return {.sequence = sequence, .grown = changes.grown};
}

void PublishedGeneration::Remove(std::span<const EntryKey> entries) {
  if (!entries.empty()) events_.TellRemoved(*current_, current_->Remove(entries));
}

void PublishedGeneration::ClearCells(const std::vector<uint32_t>& cells) {
  if (cells.empty()) return;
  current_->as_restored = false;
  // A coordinator that gets no report goes on asking; so the bits are cleared first.
  for (const uint32_t cell : cells) current_->cells->occupied.Erase(cell);
  events_.TellCellsCleared(*current_, cells);
}

bool PublishedGeneration::Narrow(const std::optional<ValueRange>& range) {
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

void PublishedGeneration::Publish(std::unique_ptr<FilterGeneration>* next) {
  events_.TellPublished(**next, current_ != nullptr);
  // Nothing after this line takes memory: once it is reported, the generation is published.
  current_ = std::move(*next);
  spoilt_ = false;
}

void PublishedGeneration::Drop() {
  events_.TellDropped(*current_);
  current_.reset();
  spoilt_ = false;
}

}  // namespace tamis
