// NextGeneration: a generation of an index filter that is being built beside the published one.
// Writes update it, and a scan counts the entries that were there before. Nothing of it is told.
//
// Removals may have to wait for the scan (HeldRemovals).
//
// Threads: exclusive access.
#pragma once

#include <memory>
#include <span>

#include "tamis/feed/entry_key.h"
#include "tamis/feed/filter_generation.h"
#include "tamis/feed/held_removals.h"

namespace tamis {

class NextGeneration {
 public:
  NextGeneration(FilterGeneration generation, bool hold_removals)
      : generation_(std::make_unique<FilterGeneration>(std::move(generation))),
        hold_removals_(hold_removals) {}

  const FilterGeneration& generation() const { return *generation_; }

  // True: it has taken more memory.
  bool Add(std::span<const EntryKey> entries);
  bool CountExisting(std::span<const EntryKey> entries);
  void Remove(std::span<const EntryKey> entries);

  // The scan is over: carries out the removals that waited for it.
  void RemoveHeld();
  // REQUIRES: nothing is called after it was taken from there.
  std::unique_ptr<FilterGeneration>* mutable_generation() { return &generation_; }

 private:
  bool AddUnlessHeld(const EntryKey& entry);

  std::unique_ptr<FilterGeneration> generation_;
  const bool hold_removals_;
  HeldRemovals held_removals_;
};

}  // namespace tamis
