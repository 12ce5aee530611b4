// FilterEvents: what coordinators are told of one filter, by events of the feed, and what of it
// they have not acknowledged.
//
// A row may be acknowledged once coordinators have applied every event without which they could
// exclude its region: those that told of the set bits of its values and of its cell, that of a
// range that covers its first value, and the publication that replaced an older generation by which
// they may still exclude. WaitFor names the last one, whichever write it came from.
//
// std::bad_alloc in a call that tells may leave coordinators without knowing of what the generation
// holds; the filter must be dropped then (TellDropped).
//
// Threads: exclusive access. Lock order: the caller's lock before the feed's.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tamis/feed/entry_key.h"
#include "tamis/feed/filter_feed.h"
#include "tamis/feed/filter_generation.h"
#include "tamis/feed/value_range.h"

namespace tamis {

class FilterEvents {
 public:
  FilterEvents(FilterFeed* feed, uint32_t index_id, uint64_t region_id, uint64_t epoch)
      : feed_(*feed), index_id_(index_id), region_id_(region_id), epoch_(epoch) {}

  // Tells of additions to the published generation. Returns the number of the last event; 0 =
  // there was nothing to tell.
  uint64_t TellAdded(const FilterGeneration& current, const FilterGeneration::Changes& changes);
  // The range became wider, or narrower.
  uint64_t TellRange(const FilterGeneration& current);
  // Bits were cleared, for which no write waits.
  void TellRemoved(const FilterGeneration& current, const FilterGeneration::Flips& flips);
  void TellCellsCleared(const FilterGeneration& current, const std::vector<uint32_t>& cells);

  // The generation becomes the published one, in the place of an older one or of none. After
  // std::bad_alloc nothing was told.
  void TellPublished(const FilterGeneration& next, bool replaces);
  // The published generation goes.
  void TellDropped(const FilterGeneration& current);

  // The number of the event that coordinators must have applied before a row with these entries
  // may be acknowledged; 0 = none. `current` may be null.
  uint64_t WaitFor(const FilterGeneration* current, std::span<const EntryKey> entries);

  // Names the filter and its number, as of the feed's last event. REQUIRES: every event of the
  // filter that is not told yet waits for the caller's lock.
  pb::Projection NewProjection(const FilterGeneration& current) const;

 private:
  // A range that coordinators were told of.
  struct ToldRange {
    uint64_t sequence;
    std::optional<ValueRange> range;
  };

  pb::Event NewEvent(pb::Event::Kind kind, const FilterGeneration& generation) const;
  void AddPending(uint64_t bit, uint64_t sequence);
  uint64_t ToldAt(uint64_t bit) const;
  uint64_t RangeToldAt(std::string_view first) const;
  void ForgetAcknowledged();
  void ForgetTold();

  FilterFeed& feed_;
  const uint32_t index_id_;
  const uint64_t region_id_;
  const uint64_t epoch_;
  // Set bits that are told but not acknowledged: bit -> number of the event.
  std::unordered_map<uint64_t, uint64_t> pending_;
  std::deque<std::pair<uint64_t, uint64_t>> pending_order_;  // (number, bit)
  std::optional<ValueRange> acknowledged_range_;
  std::deque<ToldRange> told_ranges_;  // behind it, not acknowledged
  // Number of the publication that replaced an older one, or of its drop; coordinators without it
  // exclude by the old.
  uint64_t replaced_ = 0;
};

}  // namespace tamis
