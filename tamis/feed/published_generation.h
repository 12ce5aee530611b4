// PublishedGeneration: the published generation of an index filter, or none, and the events that
// tell coordinators of it. Each of its bits that is set, and a range that covers each of its
// values, is told before the call that made it returns.
//
// If memory runs out between a change and its event, the generation is spoilt: a later write of the
// same value would change nothing and so wait for nothing. It is to be dropped, which coordinators
// are told, before the next write.
//
// Threads: exclusive access. Lock order: the caller's lock before the feed's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tamis/cluster/faults.h"
#include "tamis/feed/entry_key.h"
#include "tamis/feed/filter_events.h"
#include "tamis/feed/filter_generation.h"
#include "tamis/feed/value_range.h"

namespace tamis {

class PublishedGeneration {
 public:
  PublishedGeneration(FilterFeed* feed, uint32_t index_id, uint64_t region_id, uint64_t epoch,
                      const Faults& faults)
      : faults_(faults), events_(feed, index_id, region_id, epoch) {}

  // nullptr: none is published.
  const FilterGeneration* get() const { return current_.get(); }
  FilterGeneration* get() { return current_.get(); }
  explicit operator bool() const { return current_ != nullptr; }
  // REQUIRES of -> and *: one is published.
  const FilterGeneration* operator->() const { return current_.get(); }
  const FilterGeneration& operator*() const { return *current_; }
  bool spoilt() const { return spoilt_; }

  // REQUIRES of the following four: one is published.
  struct Added {
    uint64_t sequence = 0;  // the number of the last event; 0 = none
    bool grown = false;     // it has taken more memory
  };
  Added Add(std::span<const EntryKey> entries);
  void Remove(std::span<const EntryKey> entries);
  // Clears the bits of cells that have no entries.
  void ClearCells(const std::vector<uint32_t>& cells);
  bool Narrow(const std::optional<ValueRange>& range);  // false: it is so already

  // The generation takes the place of the published one, or of none. After std::bad_alloc it does
  // not, and *next is as it was.
  void Publish(std::unique_ptr<FilterGeneration>* next);
  // Coordinators forget the generation. REQUIRES: one is published.
  void Drop();

  // The number of the event that coordinators must have applied before a row with these entries may
  // be acknowledged; 0 = none.
  uint64_t WaitFor(std::span<const EntryKey> entries) {
    return events_.WaitFor(current_.get(), entries);
  }
  // A projection without bits. REQUIRES: one is published.
  pb::Projection NewProjection() const { return events_.NewProjection(*current_); }

 private:
  const Faults& faults_;
  FilterEvents events_;
  std::unique_ptr<FilterGeneration> current_;
  bool spoilt_ = false;  // bits of current_ may be set that are never reported to coordinators
};

}  // namespace tamis
