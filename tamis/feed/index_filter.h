// IndexFilter: what one region knows of the values of one index: the counters, which of their flips
// coordinators have not acknowledged yet, and the smallest and largest value.
//
// It holds up to two generations of counters: the published one, whose flips are events of the
// feed, and one that is being built beside it. Every put updates both, so that publishing the new
// one loses nothing. The unit of counting is an index entry: each entry counts the hash of every
// leading prefix of its encoded values once.
//
// A generation has one geometry (FilterSizing). One that does not fit its region any more asks for
// the next generation; so does one whose counters the server has no memory for, and one of bits
// alone for whose counters it has memory again (filter_budget.h).
//
// Rules that keep acknowledged rows findable: Add before the entries are committed, Remove after;
// then wait in the feed for WaitFor() of every entry that the row holds afterwards.
//
// Where the index has a cell map, a generation has one bit per cell besides: some entry may fall
// into the cell. A removal leaves the bit, and it leaves the smallest and largest value. A clearer
// finds out later, by a search of the sorted index, what has become empty, and narrows both. An
// insert into an occupied cell flips nothing and waits for nothing, and the search does not see it
// before its commit; so a cell is cleared, and the range narrowed, only by this protocol:
//
//   (a) a write registers before its commit, by Add, and leaves after it, by Leave. A write whose
//       outcome is unknown never leaves: it is registered until the entries are counted again, from
//       a snapshot that shows the write if it stands
//   (b) BeginClearing, under the mutex, names only cells for which no write is registered, and
//       keeps the values of the writes that are registered. It names no cell while a write is
//       registered whose values were not kept (they were too large)
//   (c) the clearer searches a snapshot of the index that is taken after that. It skips entries of
//       rows outside of the region, and treats a cell as occupied unless it has been proven empty
//       within some entries
//   (d) EndClearing, under the mutex, clears only cells for which no write has registered since
//       (b), and narrows only as far as the values of such writes, and of those of (b), allow
//   (e) nothing is cleared while entries of rows may be missing in the index (HoldClearing), nor
//       while a generation is being built, nor in it
//
// Threads: safe. Lock order: an IndexFilter before the feed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tamis/feed/clearing_rounds.h"
#include "tamis/feed/entry_key.h"
#include "tamis/feed/filter_budget.h"
#include "tamis/feed/filter_feed.h"
#include "tamis/feed/filter_generation.h"
#include "tamis/feed/filter_sizing.h"
#include "tamis/feed/next_generation.h"
#include "tamis/feed/published_generation.h"
#include "tamis/table/schema.h"

namespace tamis {

// When ignored removals make a filter be counted again. A recount reads all entries, so it waits
// until ignored removals reach a multiple of the entries, and at least `least`. A full counter says
// yes to a value that is gone only after the value's last row has gone, which is after at least 15
// removals; in a filter of bits alone each ignored removal may have left its value.
struct RecountRule {
  uint64_t least = 100;   // removals, where the entries are few
  uint64_t an_entry = 4;  // 0: only `least` counts
  uint64_t an_entry_of_bits = 1;
};

class IndexFilter {
 public:
  // Without a budget memory is not short.
  IndexFilter(FilterFeed* feed, const IndexSpec& index, uint64_t region_id, uint64_t epoch,
              const Faults& faults, std::shared_ptr<FilterBudget> budget = nullptr);

  using Ticket = ClearingRounds::Ticket;
  using Clearing = tamis::Clearing;
  using Cleared = tamis::Cleared;

  // Returns the number of the last event that it made; 0 = none. After std::bad_alloc the entries
  // must not be committed; what was counted of them stays, which excludes nothing. The write that
  // adds the entries is registered under *ticket; without a ticket it never leaves.
  uint64_t Add(std::span<const EntryKey> entries, Ticket* ticket = nullptr);
  // The entries are committed, or certainly will not be. 0: does nothing.
  void Leave(Ticket ticket);
  void Remove(std::span<const EntryKey> entries);

  // The number of the event that coordinators must have applied before a row with this entry may be
  // acknowledged, whichever write set the bits; 0 = none.
  uint64_t WaitFor(std::span<const EntryKey> entries);

  // Starts an empty generation beside the published one. From here on Add and Remove feed both.
  // `hold_removals`: removals wait until Publish, since the scan that counts old entries may come
  // to them later (held_removals.h). REQUIRES: no Add or Remove is between its call and the commit
  // it belongs to.
  void BeginGeneration(bool hold_removals);
  // Counts an entry that was there before BeginGeneration.
  void CountExisting(std::span<const EntryKey> entries);
  // Makes the new generation the published one. After std::bad_alloc it is not, and the generation
  // must be abandoned.
  void Publish();
  void AbandonGeneration();
  // The index is dropped: nothing is published any more, whatever is under way.
  void Retire();

  // The map of generations that are begun from here on; nullptr: none. A published generation of
  // another map asks for the next one (WantsRecount).
  void SetCellMap(std::shared_ptr<const CellMap> map);

  // True when BeginClearing may find something to do.
  bool WantsClearing() const;
  // Begins a round of at most `max_cells` cells and cancels an earlier one, whose cells are named
  // again.
  Clearing BeginClearing(size_t max_cells);
  void EndClearing(const Clearing& clearing, const Cleared& cleared);
  // From now on entries of rows may be missing in the index, until as many calls of
  // ReleaseClearing.
  void HoldClearing();
  void ReleaseClearing();

  // The published counters and range (docs/FORMATS.md#filter-snapshots); nullopt while nothing is
  // published, or bits alone are, or removals were forgotten.
  std::optional<std::string> Snapshot() const;
  // Begins a generation with what a snapshot holds. False, and nothing happens, when the bytes are
  // damaged or not of this index, or there is no memory for them. REQUIRES: the snapshot counts
  // exactly the entries that stand.
  bool RestoreGeneration(std::string_view bytes);
  // The published generation is to be replaced by one counted again: it has three layers or more,
  // or is less than a quarter full although its entries were counted or as many were added as would
  // have filled it, and a new one would have another geometry; or its cells are of another map; or
  // too many removals were ignored; or memory has become short, or is so no longer; or the
  // published one had to be dropped for want of memory; or the writes of unknown outcome leave
  // little room for others.
  bool WantsRecount(const RecountRule& rule) const;

  // The published generation; zeros without one.
  bool published() const {
    return Published([](const FilterGeneration&) { return true; });
  }
  // Whether it is still as it was restored.
  bool as_restored() const {
    return Published([](const FilterGeneration& it) { return it.as_restored; });
  }
  // Distinct hashes, estimated from how full the layers are.
  uint64_t distinct() const {
    return Published([](const FilterGeneration& it) { return it.filter.Distinct(); });
  }
  // True if it holds bits alone, no counters.
  bool bits_only() const {
    return Published([](const FilterGeneration& it) { return it.filter.bits_only(); });
  }
  SplitGeometry geometry() const {
    return Published(
        [](const FilterGeneration& it) { return SplitGeometry(it.filter.geometry()); });
  }
  size_t layers() const {
    return Published([](const FilterGeneration& it) -> size_t { return it.filter.layers(); });
  }
  // Removals that left bits set since it was begun: counters stick, layers are ambiguous, there are
  // bits alone, or too many removals were held.
  uint64_t ignored_removals() const {
    return Published([this](const FilterGeneration& it) { return it.Ignored(columns()); });
  }
  // Entries added less removed.
  uint64_t entries() const {
    return Published([this](const FilterGeneration& it) { return it.Entries(columns()); });
  }
  // Cells that are set; 0 where there is no map.
  size_t occupied_cells() const {
    return Published([](const FilterGeneration& it) -> size_t {
      return it.cells.has_value() ? it.cells->occupied.count() : 0;
    });
  }

  bool building() const;     // the next generation
  size_t SizeBytes() const;  // bytes of both

  // Returns at most `max_bytes` (at least one word) of the bits of the filter or of the cells, from
  // the place that `from` names, or from the first word if `from` names another generation. nullopt
  // while nothing is published.
  std::optional<pb::Projection> Project(const pb::ColumnId& from = {},
                                        size_t max_bytes = ~size_t{0}) const;

  // An upper bound on the entries whose leading values are `prefix`; nullopt if the counters give
  // none.
  std::optional<uint64_t> CountBound(std::string_view prefix) const;
  // False only if a published generation proves that the entry is absent; for checks.
  bool MayContain(const EntryKey& entry) const;
  const IndexSpec& index() const { return index_; }
  // Test only: plants the fault that `check` must find.
  void ClearBitsForTest(const EntryKey& entry);

 private:
  template <class Of>
  std::invoke_result_t<Of, const FilterGeneration&> Published(Of&& of) const {
    std::lock_guard lock(mutex_);
    if (!published_) return {};
    return of(*published_);
  }
  size_t columns() const { return index_.columns.size(); }
  const FilterGeneration* next() const { return next_ ? &next_->generation() : nullptr; }

  void Account() { sizing_.Account(published_.get(), next()); }
  void Begin(FilterGeneration generation, bool hold_removals);
  // A spoilt generation is counted again, and coordinators forget it before the next write.
  void DropSpoilt();
  bool MayClear() const { return !retired_ && !next_ && rounds_.MayClear(); }

  const IndexSpec index_;
  const Faults faults_;

  mutable std::mutex mutex_;
  FilterSizing sizing_;
  PublishedGeneration published_;
  ClearingRounds rounds_;
  std::optional<NextGeneration> next_;
  uint64_t generations_ = 0;
  bool retired_ = false;
  bool missing_ = false;  // a published generation was dropped since it was spoilt
  std::shared_ptr<const CellMap> cell_map_;
};

}  // namespace tamis
