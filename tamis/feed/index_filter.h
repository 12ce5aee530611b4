// IndexFilter: what one region knows of the values of one index: the counters, which of their flips
// coordinators have not acknowledged yet, and the smallest and largest value.
//
// It holds up to two generations of counters: the published one, whose flips are events of the
// feed, and one that is being built beside it. Every put updates both, so that publishing the new
// one loses nothing. The unit of counting is an index entry: each entry counts the hash of every
// leading prefix of its encoded values once.
//
// A generation has one geometry. The first one is made for the values expected; each later one for
// the distinct hashes that the counters in use show, whatever the number of entries, rounded up to
// a power of the square root of two. So filters have few sizes, and those of one size share a
// matrix at coordinators. One that does not fit its region any more asks for the next generation;
// so does one whose counters the server has no memory for, and one of bits alone for whose counters
// it has memory again (filter_budget.h).
//
// Rules that keep acknowledged rows findable: Add before the entries are committed, Remove after;
// then wait in the feed for WaitFor() of every entry that the row holds afterwards.
//
// Where the index has a cell map, a generation has one bit a cell besides: some entry may fall into
// the cell. A removal leaves the bit, and it leaves the smallest and largest value. A clearer finds
// out later, by a search of the sorted index, what has become empty, and narrows both. An insert
// into an occupied cell flips nothing and waits for nothing, and the search does not see it before
// its commit; so a cell is cleared, and the range narrowed, only by this protocol:
//
//   (a) a write registers before its commit, by Add, and leaves after it, by Leave. A write whose
//       outcome is unknown never leaves: it is registered until the entries are counted anew, from
//       a snapshot that shows the write if it stands
//   (b) BeginClearing, under the mutex, names only cells for which no write is registered, and
//       keeps the values of the writes that are; none while a write is whose values are not kept
//   (c) the clearer searches a snapshot of the index that is taken after that. It skips entries of
//       rows outside of the region, and takes what it has not found empty after some entries as
//       occupied
//   (d) EndClearing, under the mutex, clears only cells for which no write has registered since
//       (b), and narrows only as far as the values of such writes, and of those of (b), allow
//   (e) nothing is cleared while entries of rows may be missing in the index (HoldClearing), nor
//       while a generation is being built, nor in it
//
// Threads: safe. Lock order: an IndexFilter before the feed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tamis/feed/filter_budget.h"
#include "tamis/feed/filter_feed.h"
#include "tamis/feed/held_removals.h"
#include "tamis/feed/index_counters.h"
#include "tamis/feed/region_cells.h"
#include "tamis/feed/writes_under_way.h"
#include "tamis/table/schema.h"

namespace tamis {

// The part of an index entry that a filter uses.
struct EntryKey {
  std::vector<uint64_t> hashes;  // of every leading prefix of the encoded values
  std::string first;             // the first encoded value, for the range
};
// Makes the key from the encoded values up to each column of the index. REQUIRES: prefixes is not
// empty.
EntryKey MakeEntryKey(const IndexSpec& index, std::span<const std::string> prefixes);

// When removals that were ignored make a filter be counted anew. That reads all entries, so it
// waits for some removals an entry, whatever there are of them. A counter that is full says yes to
// a value that is gone only once all of its rows are, which are 15 removals at the least; in bits
// alone each one may have left its value.
struct RecountRule {
  uint64_t least = 100;   // removals, where the entries are few
  uint64_t an_entry = 4;  // 0: `least`, however many entries there are
  uint64_t an_entry_of_bits = 1;
};

class IndexFilter {
 public:
  // Without a budget memory is not short.
  IndexFilter(FilterFeed* feed, const IndexSpec& index, uint64_t region_id, uint64_t epoch,
              const Faults& faults, std::shared_ptr<FilterBudget> budget = nullptr);

  using Ticket = WritesUnderWay::Ticket;

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

  // A clearer is to look for these in the index.
  struct Clearing {
    uint64_t round = 0;  // 0: nothing is to be cleared now
    std::shared_ptr<const CellMap> map;
    std::vector<uint32_t> cells;  // ascending: those from which entries were removed
    bool range = false;           // the smallest or the largest entry has been removed
  };
  // The result of its search.
  struct Cleared {
    std::vector<uint32_t> empty = {};      // of the cells
    std::vector<uint32_t> undecided = {};  // of the cells: a later round names them again
    bool range_known = false;
    std::optional<std::pair<std::string, std::string>> range = {};  // nullopt: there is no entry
  };
  // True when BeginClearing may find something to do.
  bool WantsClearing() const;
  // Begins a round of at most so many cells; a round before it ends, and its cells are named again.
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
  // Whether what is published is still as it was restored.
  bool as_restored() const;

  bool published() const;
  bool building() const;
  // The published generation is to be replaced by one counted anew: it has three layers or more, or
  // is less than a quarter full although its entries were counted or as many were added as would
  // have filled it; or too many removals were ignored; or memory has become short, or is so no
  // longer; or the published one had to be dropped for want of memory; or the writes of unknown
  // outcome leave little room for others.
  bool WantsRecount(const RecountRule& rule) const;
  // Distinct hashes in the published counters, estimated from how full the layers are.
  uint64_t distinct() const;
  // True if the published generation holds bits alone, no counters.
  bool bits_only() const;
  SplitGeometry geometry() const;

  // Removals that left bits set since the generation was begun: counters stick, layers are
  // ambiguous, there are bits alone, or too many removals were held.
  uint64_t ignored_removals() const;
  size_t layers() const;
  // Cells of the published generation that are set; 0 where there is no map.
  size_t occupied_cells() const;
  size_t SizeBytes() const;  // of the counters, those of a generation that is being built too
  uint64_t entries() const;  // added less removed

  // The bits from where `from` says, of the filter or of the cells, at most so many bytes of them,
  // but one word at the least; all that there are when `from` names another generation. nullopt
  // while nothing is published.
  std::optional<pb::Projection> Project(const pb::ColumnId& from = {},
                                        size_t max_bytes = ~size_t{0}) const;
  const IndexSpec& index() const { return index_; }

  // Entries with these encoded values of leading columns: not more than this. nullopt when the
  // counters do not say.
  std::optional<uint64_t> CountBound(std::string_view prefix) const;
  // True when the published counters say that the entry may be there: for checks.
  bool MayContain(const EntryKey& entry) const;
  // Test only: plants the fault that `check` must find.
  void ClearBitsForTest(const EntryKey& entry);

 private:
  using ValueRange = std::pair<std::string, std::string>;  // smallest and largest, inclusive

  struct Generation {
    uint64_t number = 0;
    IndexCounters filter;
    std::optional<RegionCells> cells;
    std::optional<ValueRange> range;
    bool range_stale = false;  // its smallest or largest value was removed
    bool as_restored = false;
    bool counted = false;    // from the entries that existed: it will not grow by these any more
    uint64_t added = 0;      // hashes, since it was begun
    uint64_t forgotten = 0;  // removals that found no room to be held
  };
  // A range that coordinators were told of.
  struct ToldRange {
    uint64_t sequence;
    std::optional<ValueRange> range;
  };
  // A clearing that is under way.
  struct Round {
    uint64_t number = 0;
    std::set<uint32_t> cells;         // no write has registered for them
    std::optional<ValueRange> added;  // smallest and largest value of writes that have registered
  };

  pb::Event NewEvent(pb::Event::Kind kind, const Generation& generation) const;
  Generation NewGeneration(uint64_t number) const;
  SplitGeometry GeometryFor(uint64_t distinct) const;
  // Whether there is memory for such counters instead of what is published.
  bool HasRoomFor(SplitGeometry geometry) const;
  bool WantsOtherForm() const;
  uint64_t CountedEntries() const;  // REQUIRES: current_
  uint64_t Ignored() const;         // REQUIRES: current_
  // After whatever changes how much memory it takes.
  void Account();
  uint64_t AddTo(Generation* generation, std::span<const EntryKey> entries, bool tell);
  // Memory ran out in an Add, between setting a bit and telling of it. A later Add of the same
  // value sets no bit and would wait for nothing, so coordinators are told to forget the filter
  // first.
  void DropSpoilt();
  void AddWhileCounting(const EntryKey& entry);  // to the next generation
  // Returns the flips.
  static std::vector<uint64_t> RemoveHashes(Generation* generation,
                                            std::span<const EntryKey> entries);
  void RemoveFrom(Generation* generation, std::span<const EntryKey> entries, bool tell);
  static void LeaveToClearer(Generation* generation, std::string_view first);
  uint64_t RangeToldAt(std::string_view first) const;
  pb::Event RangeEvent(const Generation& generation) const;
  bool MayClear() const;
  Ticket Register(std::span<const EntryKey> entries);
  void NoteRegistration(std::string_view first);
  std::vector<uint32_t> TakeCells(const std::set<uint32_t>& busy, size_t max_cells);
  void CancelRound();
  void ClearCells(const std::vector<uint32_t>& cells);
  bool Narrow(const std::optional<ValueRange>& range);  // false: it is so already
  void ForgetAcknowledged();
  void ForgetTold();  // of current_, which goes

  FilterFeed* const feed_;
  const IndexSpec index_;
  const uint64_t region_id_;
  const uint64_t epoch_;
  const Faults faults_;
  std::optional<FilterBudget::Share> share_;

  mutable std::mutex mutex_;
  std::unique_ptr<Generation> current_;  // published
  std::unique_ptr<Generation> next_;     // being built
  bool hold_removals_ = false;
  HeldRemovals held_removals_;
  uint64_t generations_ = 0;
  bool retired_ = false;
  bool spoilt_ = false;   // bits of current_ may be set that coordinators are never told of
  bool missing_ = false;  // what was published was dropped for that
  // Set bits that are told but not acknowledged: bit -> number of the event.
  std::unordered_map<uint64_t, uint64_t> pending_;
  std::deque<std::pair<uint64_t, uint64_t>> pending_order_;  // (number, bit)
  std::optional<ValueRange> acknowledged_range_;
  std::deque<ToldRange> told_ranges_;  // behind it, not acknowledged
  // Number of the publication that replaced an older one, or of its drop; coordinators without it
  // exclude by the old.
  uint64_t replaced_ = 0;

  std::shared_ptr<const CellMap> cell_map_;
  WritesUnderWay writes_;
  uint64_t rounds_ = 0;
  uint32_t next_cell_ = 0;  // behind the last one that a round was to look at
  std::optional<Round> round_;
  bool range_in_round_ = false;
  int clearing_holds_ = 0;
};

}  // namespace tamis
