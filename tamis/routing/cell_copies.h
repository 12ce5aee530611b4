// CellCopies: a coordinator's copies of which cells the regions have values in, of one index of one
// table, by slot.
//
// Regions may follow different versions of the index's cell map while it is replaced; there is a
// matrix for each version. A question names the version that its cells are numbered by: regions of
// another version, and regions whose bits have not arrived, may always hold the value.
//
//   Threads   const members may run concurrently; others need exclusive access
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tamis/filter/cell_set.h"
#include "tamis/routing/cell_matrix.h"
#include "tamis/routing/region_bits.h"
#include "tamis/routing/table_layout.h"

namespace tamis {

class CellCopies {
 public:
  using Slot = TableLayout::Slot;

  // The regions of one version of the map.
  struct Version {
    Version(uint64_t version, uint32_t cells) : version(version), bits(cells) {}

    uint64_t version;
    CellMatrix bits;    // a column is a slot
    RegionBits usable;  // by slot
    size_t copies = 0;
  };
  struct Copy {
    uint64_t generation = 0;
    Version* version = nullptr;
    CellSet arriving;         // the cells that have arrived, until all have
    uint32_t arrived_to = 0;  // so many
  };

  // A copy without bits, in place of what there was. REQUIRES: cells > 0.
  void Begin(Slot slot, uint64_t generation, uint64_t version, uint32_t cells);
  void Drop(Slot slot);
  // nullptr: the region has no cells that are known of.
  Copy* Find(Slot slot) { return slot < copies_.size() ? copies_[slot].get() : nullptr; }
  const Copy* Find(Slot slot) const { return const_cast<CellCopies*>(this)->Find(slot); }
  bool usable(Slot slot) const;

  // The next part of the bits: that of [first, end). False, and nothing is changed, when it does
  // not follow on those before it, or is damaged.
  [[nodiscard]] bool Add(Slot slot, std::string_view part, uint32_t first, uint32_t end);
  bool arrived(Slot slot) const;  // all of them
  // Forgets the parts that have arrived.
  void StartOver(Slot slot);
  // Sets or clears the cell, where it has arrived. False: there is no such cell.
  [[nodiscard]] bool Set(Slot slot, uint32_t cell, bool value);
  // Makes the copy usable. REQUIRES: its column is loaded with the bits that arrived.
  void Use(Slot slot);

  // Removes from *may the regions that certainly have no value in a cell of [first, last].
  void RemoveThoseWithout(uint64_t version, uint32_t first, uint32_t last, RegionBits* may) const;

  // Where the values of a region begin in a range of cells.
  struct FirstCell {
    bool known = false;
    bool none = false;  // the region has no value there
    uint32_t cell = 0;  // it has none before this cell
  };
  // By slot, for the cells of [first, last]; slots at the end may be missing. `backward`: from the
  // last cell on. A bounded number of cells is looked at.
  std::vector<FirstCell> FirstCellsIn(uint64_t version, uint32_t first, uint32_t last,
                                      bool backward) const;

  size_t SizeBytes() const;
  // By how much it would grow if the copy's column were loaded, where there are so many slots.
  size_t GrowthBytes(Slot slot, size_t slots) const;

 private:
  std::vector<std::unique_ptr<Copy>> copies_;  // by slot
  std::vector<std::unique_ptr<Version>> versions_;
};

}  // namespace tamis
