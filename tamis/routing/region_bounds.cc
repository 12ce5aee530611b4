#include "tamis/routing/region_bounds.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tamis/routing/cell_copies.h"
#include "tamis/routing/index_copies.h"
#include "tamis/routing/region_bits.h"
#include "tamis/routing/table_layout.h"

namespace tamis {
namespace {

std::vector<CellCopies::FirstCell> FirstCellsOf(const CellCopies& copies,
                                                const WantedValues& wanted, bool largest) {
  if (wanted.cells == nullptr) return {};
  const CellMap& map = *wanted.cells;
  const uint32_t last = wanted.high.empty() ? map.cells() - 1 : map.CellOf(wanted.high);
  return copies.FirstCellsIn(map.version(), map.CellOf(wanted.low), last, largest);
}

// Moves the smallest or largest value of a region to where its cells begin.
void Narrow(const CellMap& map, const CellCopies::FirstCell& begin, bool largest,
            std::optional<std::string>* value) {
  if (!begin.known || !value->has_value()) return;
  if (begin.none) {
    value->reset();
  } else if (!largest) {
    *value = std::max(**value, map.LowestOf(begin.cell));
  } else if (begin.cell + 1 < map.cells()) {
    // Values of the cell are less than any of a later one.
    const std::string above = map.LowestOf(begin.cell + 1);
    if (map.CellOf(above) > begin.cell) *value = std::min(**value, above);
  }
}

}  // namespace

std::vector<RegionBound> RegionBounds(const TableLayout& layout, const IndexCopies& copies,
                                      const RegionBits& unknown, const KeyRanges& keys,
                                      bool largest, const WantedValues& wanted) {
  std::vector<RegionBound> bounds;
  const auto begins = FirstCellsOf(copies.cells(), wanted, largest);
  size_t next = 0;  // position; ranges may lie in one region
  for (const KeyRange& range : keys.ranges()) {
    const auto [begin, end] = layout.Positions(range);
    for (size_t i = std::max(begin, next); i < end; ++i) {
      const TableLayout::Slot slot = layout.at(i);
      if (unknown.Get(slot)) continue;
      auto value = copies.EndOf(slot, largest);
      if (slot < begins.size()) Narrow(*wanted.cells, begins[slot], largest, &value);
      bounds.push_back({layout.range(slot), std::move(value)});
    }
    next = std::max(next, end);
  }
  return bounds;
}

}  // namespace tamis
