// ClearingRounds: the writes that are registered in a filter, and the round of clearing that is
// under way beside them: rules (a), (b), (d) and (e) of IndexFilter, but that nothing is cleared
// beside a generation that is being built.
//
// The jar has the same class.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tamis/cluster/faults.h"
#include "tamis/feed/entry_key.h"
#include "tamis/feed/published_generation.h"
#include "tamis/feed/region_cells.h"
#include "tamis/feed/value_range.h"
#include "tamis/feed/writes_under_way.h"

namespace tamis {

// A clearer is to look for these in the index.
struct Clearing {
  uint64_t round = 0;  // 0: nothing is to be cleared now
  std::shared_ptr<const CellMap> map;
  std::vector<uint32_t> cells;  // ascending: those from which entries were removed
  bool range = false;           // the smallest or the largest entry has been removed
};

// The result of its search.
struct Cleared {
  std::vector<uint32_t> empty = {};      // cells without entries
  std::vector<uint32_t> undecided = {};  // cells that a later round names again
  bool range_known = false;
  std::optional<ValueRange> range = {};  // nullopt: there is no entry
};

class ClearingRounds {
 public:
  using Ticket = WritesUnderWay::Ticket;

  // Both outlive it.
  ClearingRounds(PublishedGeneration* published, const Faults& faults)
      : published_(*published), faults_(faults) {}

  // Registers a write before its commit.
  Ticket Enter(std::span<const EntryKey> entries);
  void Leave(Ticket ticket) { writes_.Leave(ticket); }
  // Writes of unknown outcome leave little room for others.
  bool is_stuck() const { return writes_.is_stuck(); }
  // A generation begins, which is to count what the writes so far have left.
  void Mark() { writes_.Mark(); }
  void ForgetMarked() { writes_.ForgetMarked(); }  // it is published

  // From now on entries of rows may be missing in the index, until as many calls of Release.
  void Hold();
  void Release() { --holds_; }
  // One is published, and its index has all entries.
  bool MayClear() const;
  // Begin may find something to look at. REQUIRES: MayClear().
  bool IsWanted() const;
  // Begins a round of at most so many cells. REQUIRES: MayClear(), and none is under way.
  Clearing Begin(size_t max_cells);
  // Ends the round, if it is under way still: clears what the search has proven to be empty, and
  // notes what a later round is to look at. REQUIRES: MayClear().
  void End(const Clearing& clearing, const Cleared& cleared);
  // Nothing is cleared by the round any more; what it was to look at is to be looked at again in
  // the published generation.
  void Cancel();
  // The generation that it looked at is gone.
  void Forget() { round_.reset(); }

 private:
  struct Round {
    uint64_t number = 0;
    std::set<uint32_t> cells;         // no write has registered for them
    bool range = false;               // its ends are looked for
    std::optional<ValueRange> added;  // smallest and largest value of writes that have registered
  };

  void NoteRegistration(std::string_view first);
  std::vector<uint32_t> TakeCells(RegionCells* cells, const std::set<uint32_t>& busy,
                                  size_t max_cells);
  void EndCells(const Round& round, const Cleared& cleared, RegionCells* cells);
  void EndRange(const Round& round, const Cleared& cleared);

  PublishedGeneration& published_;
  const Faults& faults_;
  WritesUnderWay writes_;
  uint64_t rounds_ = 0;
  uint32_t next_cell_ = 0;  // behind the last one that a round was to look at
  std::optional<Round> round_;
  int holds_ = 0;
};

}  // namespace tamis
