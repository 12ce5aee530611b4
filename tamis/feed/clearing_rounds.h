// ClearingRounds: the writes that are registered in a filter, and the round of clearing that is
// under way beside them: rules (a), (b) and (d) of IndexFilter.
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
#include "tamis/feed/filter_generation.h"
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

  explicit ClearingRounds(const Faults& faults) : faults_(faults) {}

  // Registers a write before its commit. `current` is the published generation, or null.
  Ticket Enter(std::span<const EntryKey> entries, const FilterGeneration* current);
  void Leave(Ticket ticket) { writes_.Leave(ticket); }
  // Writes of unknown outcome leave little room for others.
  bool is_stuck() const { return writes_.is_stuck(); }
  // A generation begins, which is to count what the writes so far have left.
  void Mark() { writes_.Mark(); }
  void ForgetMarked() { writes_.ForgetMarked(); }  // it is published

  // Begins a round of at most so many cells. REQUIRES: none is under way.
  Clearing Begin(FilterGeneration* current, size_t max_cells);
  // A round ends: this is cleared of the generation.
  struct Outcome {
    std::vector<uint32_t> cells = {};  // that are occupied until then
    bool narrows = false;
    std::optional<ValueRange> range = {};
    bool range_stale = false;  // the range may be wider than it need be
  };
  // Ends the round, and notes in the generation what a later one is to look at. nullopt: it is not
  // under way any more.
  std::optional<Outcome> End(const Clearing& clearing, const Cleared& cleared,
                             FilterGeneration* current);
  // Nothing is cleared by the round any more; what it was to look at is to be looked at again in
  // the generation, which may be null.
  void Cancel(FilterGeneration* current);
  // The generation that it looked at is gone.
  void Forget() { round_.reset(); }

 private:
  struct Round {
    uint64_t number = 0;
    std::set<uint32_t> cells;         // no write has registered for them
    bool range = false;               // its ends are looked for
    std::optional<ValueRange> added;  // smallest and largest value of writes that have registered
  };

  void NoteRegistration(std::string_view first, const FilterGeneration* current);
  std::vector<uint32_t> TakeCells(RegionCells* cells, const std::set<uint32_t>& busy,
                                  size_t max_cells);

  const Faults& faults_;
  WritesUnderWay writes_;
  uint64_t rounds_ = 0;
  uint32_t next_cell_ = 0;  // behind the last one that a round was to look at
  std::optional<Round> round_;
};

}  // namespace tamis
