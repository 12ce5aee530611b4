#include "tamis/feed/clearing_rounds.h"

#include <algorithm>
#include <string>

namespace tamis {

ClearingRounds::Ticket ClearingRounds::Enter(std::span<const EntryKey> entries,
                                             const FilterGeneration* current) {
  std::vector<std::string> firsts;
  firsts.reserve(entries.size());
  for (const EntryKey& entry : entries) firsts.push_back(entry.first);
  for (const std::string& first : firsts) NoteRegistration(first, current);
  const Ticket ticket = writes_.Enter(std::move(firsts));
  if (faults_.leave_before_commit) writes_.Leave(ticket);
  return ticket;
}

// A write registers: it may commit after the snapshot of the round that is under way.
void ClearingRounds::NoteRegistration(std::string_view first, const FilterGeneration* current) {
  if (!round_.has_value() || faults_.clear_despite_writes) return;
  if (current != nullptr && current->cells.has_value()) {
    round_->cells.erase(current->cells->map->CellOf(first));
  }
  Widen(&round_->added, first);
}

Clearing ClearingRounds::Begin(FilterGeneration* current, size_t max_cells) {
  if (writes_.has_unlisted() && !faults_.clear_amid_writes) return {};
  Round round{.number = rounds_ + 1, .cells = {}, .added = {}};
  std::set<uint32_t> busy;
  if (!faults_.clear_amid_writes) {
    writes_.ForEach([&](const std::string& first) {
      if (current->cells.has_value()) busy.insert(current->cells->map->CellOf(first));
      Widen(&round.added, first);
    });
  }
  Clearing clearing{.round = round.number, .map = nullptr, .cells = {}, .range = false};
  if (current->cells.has_value()) {
    clearing.map = current->cells->map;
    clearing.cells = TakeCells(&*current->cells, busy, max_cells);
    round.cells.insert(clearing.cells.begin(), clearing.cells.end());
  }
  clearing.range = std::exchange(current->range_stale, false);
  if (clearing.cells.empty() && !clearing.range) return {};
  round.range = clearing.range;
  rounds_ = round.number;
  round_ = std::move(round);
  return clearing;
}

// Takes cells out of those that entries were removed from, from the one after the last that was
// taken on, so that cells that are never decided do not keep others waiting.
std::vector<uint32_t> ClearingRounds::TakeCells(RegionCells* cells, const std::set<uint32_t>& busy,
                                                size_t max_cells) {
  std::vector<uint32_t> taken;
  const uint32_t begin = std::min(next_cell_, cells->map->cells());
  for (const bool from_begin : {true, false}) {
    const uint32_t end = from_begin ? cells->map->cells() : begin;
    for (uint32_t cell = cells->removed_from.Next(from_begin ? begin : 0);
         cell < end && taken.size() < max_cells; cell = cells->removed_from.Next(cell + 1)) {
      if (busy.contains(cell)) continue;
      if (cells->occupied.Contains(cell)) taken.push_back(cell);
      cells->removed_from.Erase(cell);
      next_cell_ = cell + 1;
    }
  }
  std::ranges::sort(taken);
  return taken;
}

std::optional<ClearingRounds::Outcome> ClearingRounds::End(const Clearing& clearing,
                                                           const Cleared& cleared,
                                                           FilterGeneration* current) {
  if (!round_.has_value() || round_->number != clearing.round) return std::nullopt;
  const Round round = *std::exchange(round_, std::nullopt);
  Outcome outcome;
  if (current->cells.has_value()) {
    for (const uint32_t cell : cleared.empty) {
      if (!round.cells.contains(cell) && !faults_.clear_despite_writes) {
        current->cells->removed_from.Insert(cell);  // a write may have filled it
      } else if (current->cells->occupied.Contains(cell)) {
        outcome.cells.push_back(cell);
      }
    }
    for (const uint32_t cell : cleared.undecided) current->cells->removed_from.Insert(cell);
  }
  if (!clearing.range) return outcome;
  outcome.narrows = cleared.range_known;
  outcome.range_stale = !cleared.range_known;
  if (!cleared.range_known) return outcome;
  outcome.range = cleared.range;
  if (round.added.has_value()) {
    Widen(&outcome.range, round.added->first);
    Widen(&outcome.range, round.added->second);
  }
  // A write that bounds it may have been undone meanwhile, when its value was none of the ends.
  outcome.range_stale = outcome.range != cleared.range;
  return outcome;
}

void ClearingRounds::Cancel(FilterGeneration* current) {
  const std::optional<Round> round = std::exchange(round_, std::nullopt);
  if (!round.has_value() || current == nullptr) return;
  if (current->cells.has_value()) {
    for (const uint32_t cell : round->cells) current->cells->removed_from.Insert(cell);
  }
  current->range_stale |= round->range;
}

}  // namespace tamis
