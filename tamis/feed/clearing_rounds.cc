#include "tamis/feed/clearing_rounds.h"

#include <algorithm>
#include <string>

namespace tamis {

ClearingRounds::Ticket ClearingRounds::Enter(std::span<const EntryKey> entries) {
  std::vector<std::string> firsts;
  firsts.reserve(entries.size());
  for (const EntryKey& entry : entries) firsts.push_back(entry.first);
  for (const std::string& first : firsts) NoteRegistration(first);
  const Ticket ticket = writes_.Enter(std::move(firsts));
  if (faults_.leave_before_commit) writes_.Leave(ticket);
  return ticket;
}

// A write registers: it may commit after the snapshot of the round that is under way.
void ClearingRounds::NoteRegistration(std::string_view first) {
  if (!round_.has_value() || faults_.clear_despite_writes) return;
  if (published_ && published_->cells.has_value()) {
    round_->cells.erase(published_->cells->map->CellOf(first));
  }
  Widen(&round_->added, first);
}

void ClearingRounds::Hold() {
  ++holds_;
  if (!faults_.clear_incomplete) Cancel();
}

bool ClearingRounds::MayClear() const {
  const bool complete = holds_ == 0 || faults_.clear_incomplete;
  return published_ && !published_.spoilt() && complete;
}

bool ClearingRounds::IsWanted() const {
  return published_->range_stale ||
         (published_->cells.has_value() && !published_->cells->removed_from.empty());
}

Clearing ClearingRounds::Begin(size_t max_cells) {
  FilterGeneration* const current = published_.get();
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

void ClearingRounds::End(const Clearing& clearing, const Cleared& cleared) {
  if (!round_.has_value() || round_->number != clearing.round) return;
  const Round round = *std::exchange(round_, std::nullopt);
  FilterGeneration* const current = published_.get();
  if (current->cells.has_value()) EndCells(round, cleared, &*current->cells);
  if (clearing.range) EndRange(round, cleared);
}

void ClearingRounds::EndCells(const Round& round, const Cleared& cleared, RegionCells* cells) {
  std::vector<uint32_t> empty;
  for (const uint32_t cell : cleared.empty) {
    if (!round.cells.contains(cell) && !faults_.clear_despite_writes) {
      cells->removed_from.Insert(cell);  // a write may have filled it
    } else if (cells->occupied.Contains(cell)) {
      empty.push_back(cell);
    }
  }
  for (const uint32_t cell : cleared.undecided) cells->removed_from.Insert(cell);
  published_.ClearCells(empty);
}

void ClearingRounds::EndRange(const Round& round, const Cleared& cleared) {
  if (!cleared.range_known) {
    published_.get()->range_stale = true;
    return;
  }
  std::optional<ValueRange> range = cleared.range;
  if (round.added.has_value()) {
    Widen(&range, round.added->first);
    Widen(&range, round.added->second);
  }
  // A write that bounds it may have been undone meanwhile, when its value was none of the ends.
  if (published_.Narrow(range)) published_.get()->range_stale |= range != cleared.range;
}

void ClearingRounds::Cancel() {
  const std::optional<Round> round = std::exchange(round_, std::nullopt);
  FilterGeneration* const current = published_.get();
  if (!round.has_value() || current == nullptr) return;
  if (current->cells.has_value()) {
    for (const uint32_t cell : round->cells) current->cells->removed_from.Insert(cell);
  }
  current->range_stale |= round->range;
}

}  // namespace tamis
