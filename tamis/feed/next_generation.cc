#include "tamis/feed/next_generation.h"

namespace tamis {

bool NextGeneration::Add(std::span<const EntryKey> entries) {
  if (!hold_removals_) return generation_->Add(entries).grown;
  bool grown = false;
  for (const EntryKey& entry : entries) grown |= AddUnlessHeld(entry);
  return grown;
}

// The range is widened and the cell set even for a cancelled entry: the scan may not have reached
// the one that stays.
bool NextGeneration::AddUnlessHeld(const EntryKey& entry) {
  if (held_removals_.Cancel(entry.hashes)) {
    Widen(&generation_->range, entry.first);
    if (auto& cells = generation_->cells; cells.has_value()) {
      cells->occupied.Insert(cells->map->CellOf(entry.first));
    }
    return false;
  }
  const bool grown = generation_->Add(std::span(&entry, 1)).grown;
  held_removals_.Added(entry.hashes);
  return grown;
}

bool NextGeneration::CountExisting(std::span<const EntryKey> entries) {
  generation_->counted = true;
  return generation_->Add(entries).grown;
}

void NextGeneration::Remove(std::span<const EntryKey> entries) {
  for (const EntryKey& entry : entries) {
    generation_->LeaveToClearer(entry.first);
    const auto removal =
        hold_removals_ ? held_removals_.Remove(entry.hashes) : HeldRemovals::Removal::kNow;
    if (removal == HeldRemovals::Removal::kNow) generation_->RemoveHashes(std::span(&entry, 1));
    if (removal == HeldRemovals::Removal::kForgotten) ++generation_->forgotten;
  }
}

void NextGeneration::RemoveHeld() {
  held_removals_.Drain([this](const HeldRemovals::Hashes& hashes) {
    const EntryKey entry{.hashes = hashes, .first = {}};  // the clearer knows of it already
    generation_->RemoveHashes(std::span(&entry, 1));
  });
}

}  // namespace tamis
