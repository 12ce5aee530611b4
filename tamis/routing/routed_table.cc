#include "tamis/routing/routed_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tamis {

RegionBits RoutedTable::MayHold(const RoutingTerm& term, By by) const {
  RegionBits may(layout.slots(), term.kind == RoutingTerm::Kind::kAll);
  switch (term.kind) {
    case RoutingTerm::Kind::kAll:
    case RoutingTerm::Kind::kNone:
      break;
    case RoutingTerm::Kind::kAnd:
      may = RegionBits(may.size(), term.children.empty());
      for (size_t i = 0; i < term.children.size(); ++i) {
        if (i == 0) {
          may = MayHold(term.children[0], by);
        } else {
          may &= MayHold(term.children[i], by);
        }
      }
      break;
    case RoutingTerm::Kind::kOr:
      AddAny(term, by, &may);
      break;
    case RoutingTerm::Kind::kRange:
    case RoutingTerm::Kind::kValue:
      AddLeaves(std::span(&term, 1), by, &may);
  }
  return may;
}

// Alternatives that are values of one index, side by side, are looked up together.
void RoutedTable::AddAny(const RoutingTerm& term, By by, RegionBits* may) const {
  const std::span<const RoutingTerm> children(term.children);
  for (size_t begin = 0, end = 0; begin < children.size(); begin = end) {
    end = begin + 1;
    if (children[begin].kind != RoutingTerm::Kind::kValue) {
      *may |= MayHold(children[begin], by);
      continue;
    }
    while (end < children.size() && children[end].kind == RoutingTerm::Kind::kValue &&
           children[end].index_id == children[begin].index_id) {
      ++end;
    }
    AddLeaves(children.subspan(begin, end - begin), by, may);
  }
}

// REQUIRES: one range, or values of one index.
void RoutedTable::AddLeaves(std::span<const RoutingTerm> leaves, By by, RegionBits* may) const {
  auto found = indexes.find(leaves[0].index_id);
  if (found == indexes.end()) {
    *may = RegionBits(may->size(), true);
    return;
  }
  const IndexCopies& copies = found->second;
  if (leaves[0].kind == RoutingTerm::Kind::kRange) {
    const RoutingTerm& range = leaves[0];
    copies.AddThoseInRange(range.low, range.high, may);
    if (by == By::kRanges || range.cell_map == 0) return;
    RegionBits with_cells = *may;
    copies.cells().RemoveThoseWithout(range.cell_map, range.first_cell, range.last_cell,
                                      &with_cells);
    copies.AddUnknown(&with_cells);
    *may = std::move(with_cells);
  } else if (by == By::kFilters) {
    std::vector<IndexCopies::Value> values;
    values.reserve(leaves.size());
    for (const RoutingTerm& leaf : leaves) values.push_back({leaf.hash, leaf.first});
    copies.AddThoseWith(values, may);
  } else {
    for (const RoutingTerm& leaf : leaves) copies.AddThoseThatCover(leaf.first, may);
  }
}

void RoutedTable::AddUnknown(const RoutingTerm& term, RegionBits* unknown) const {
  for (const auto& child : term.children) AddUnknown(child, unknown);
  if (term.kind != RoutingTerm::Kind::kValue && term.kind != RoutingTerm::Kind::kRange) return;
  auto found = indexes.find(term.index_id);
  if (found == indexes.end()) {
    *unknown = RegionBits(unknown->size(), true);
  } else {
    found->second.AddUnknown(unknown);
  }
}

KeyRanges RoutedTable::AllBut(const RegionBits& may, const KeyRanges& keys) const {
  RegionBits candidates(layout.size());  // by position
  may.ForEach([&](size_t slot) {
    const uint32_t position = layout.position(static_cast<TableLayout::Slot>(slot));
    if (position != TableLayout::kNotPlaced) candidates.Set(position);
  });
  // Runs of excluded regions that touch each other, by position, the last one included.
  const RegionBits& breaks = layout.breaks();
  std::vector<std::pair<uint32_t, uint32_t>> runs;
  for (const KeyRange& range : keys.ranges()) {
    const auto [begin, end] = layout.Positions(range);
    size_t next_break = breaks.Find(begin, true);
    for (size_t i = candidates.Find(begin, false); i < end; i = candidates.Find(i, false)) {
      if (next_break < i) next_break = breaks.Find(i, true);
      const size_t last = std::min({candidates.Find(i, true) - 1, next_break, end - 1});
      runs.emplace_back(static_cast<uint32_t>(i), static_cast<uint32_t>(last));
      i = last + 1;
    }
  }
  // Regions lie in memory in no order: those needed soon are on their way, and before that their
  // keys, which may lie elsewhere again.
  constexpr size_t kAhead = 8;
  const auto start_of = [&](size_t run) -> const std::string& {
    return layout.range(layout.at(runs[run].first)).start;
  };
  const auto end_of = [&](size_t run) -> const std::string& {
    return layout.range(layout.at(runs[run].second)).end;
  };
  KeyRanges excluded;
  excluded.Reserve(runs.size());
  for (size_t i = 0; i < runs.size() + 2 * kAhead; ++i) {
    if (i < runs.size()) {
      __builtin_prefetch(&start_of(i));
      __builtin_prefetch(&end_of(i));
    }
    if (i >= kAhead && i - kAhead < runs.size()) {
      __builtin_prefetch(start_of(i - kAhead).data());
      __builtin_prefetch(end_of(i - kAhead).data());
    }
    if (i >= 2 * kAhead) {
      excluded.Add({start_of(i - 2 * kAhead), end_of(i - 2 * kAhead)});
    }
  }
  return excluded;
}

size_t RoutedTable::SizeBytes() const {
  size_t size = 0;
  for (const auto& [id, copies] : indexes) size += copies.SizeBytes();
  return size;
}

}  // namespace tamis
