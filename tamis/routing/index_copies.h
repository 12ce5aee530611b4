// IndexCopies: a coordinator's copies of one index of one table: of each region, by its slot in the
// table's layout, the bits of its filter, all of one geometry side by side in a FilterMatrix, and
// the smallest and largest value (ValueRanges).
//
// A copy is *usable* once its bits have arrived. Other copies always answer "may hold".
//
//   Value     one probe of each matrix, then a comparison with the range of each matching region
//   Range     two comparisons of 8 bytes for each slot, 64 slots at a time; whole values are
//             compared only where these are equal. The 8 bytes follow the values' common prefix
//   Memory    a matrix may keep fewer slices than its filters have, so that it takes less and asks
//             more regions in vain
//   Threads   const members may run concurrently; others need exclusive access
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/routing/cell_copies.h"
#include "tamis/routing/filter_matrix.h"
#include "tamis/routing/projection_parts.h"
#include "tamis/routing/region_bits.h"
#include "tamis/routing/table_layout.h"
#include "tamis/routing/value_ranges.h"

namespace tamis {

class IndexCopies {
 public:
  using Slot = TableLayout::Slot;
  static constexpr Slot kNoSlot = ~Slot{0};

  // The columns of one geometry, and the region that each belongs to.
  struct Matrix {
    explicit Matrix(SplitGeometry geometry) : geometry(geometry), bits(geometry) {}

    // The region that a column belongs to and the ends of its value range: all that a search reads
    // for a matching column, side by side in memory.
    struct Owner {
      Slot slot = kNoSlot;  // kNoSlot while the column is not to be asked
      ValueRanges::Prefixes ends = {0, 0};
    };

    const SplitGeometry geometry;  // the geometry of the filters; `bits` has their first slices
    FilterMatrix bits;
    std::vector<Owner> owners;  // by column
  };
  struct Copy {
    uint64_t generation = 0;
    SplitGeometry geometry;
    uint32_t layers = 0;
    Matrix* matrix = nullptr;                   // once columns were given
    std::vector<FilterMatrix::Column> columns;  // one per layer
    std::unique_ptr<ProjectionParts> arriving;  // bits that come in parts, until all are here
  };
  // A value that is looked for: the hash of a prefix of the encoded values, and the first of them.
  struct Value {
    uint64_t hash = 0;
    std::string_view first;
  };

  // nullptr: nothing is known of that region's index.
  Copy* Find(Slot slot) { return slot < copies_.size() ? copies_[slot].get() : nullptr; }
  const Copy* Find(Slot slot) const { return const_cast<IndexCopies*>(this)->Find(slot); }
  // The smallest value of a usable copy, or the largest one; nullopt: there is no entry.
  std::optional<std::string> EndOf(Slot slot, bool largest) const {
    return ranges_.EndOf(slot, largest);
  }
  bool usable(Slot slot) const { return slot < usable_.size() && usable_.Get(slot); }
  bool empty() const { return count_ == 0; }
  // The cells of the same regions, where their filters have any.
  CellCopies& cells() { return cells_; }
  const CellCopies& cells() const { return cells_; }

  // A copy without bits, in place of what there was.
  void Begin(Slot slot, Copy copy);
  void Drop(Slot slot);
  void SetRange(Slot slot, bool has_range, std::string_view min, std::string_view max);
  // How many columns to reserve, so that each copy of the geometry that has none can get one
  // (copies of several layers are few); 0: as many are free already.
  size_t Lacking(SplitGeometry geometry);
  // Makes room for these columns at once, in fewer and larger blocks than one by one.
  void ReserveLacking(SplitGeometry geometry);
  // Gives the copy a column for each layer. The columns hold stale bits and are not searched before
  // Use.
  void GiveColumns(Slot slot);
  void FreeColumns(Slot slot);
  // REQUIRES: the columns are loaded.
  void Use(Slot slot);
  // One more column of a copy that has columns. REQUIRES: `column` is loaded.
  void AddLayer(Slot slot, FilterMatrix::Column column);
  // Sets or clears a bit, unless its slice is not kept. REQUIRES: layer and position are those of a
  // copy that has columns.
  void Set(Slot slot, uint64_t layer, uint64_t position, bool value);

  // The following set the bits of the slots whose regions may hold the asked values. Slots of
  // copies that are not usable are set as well; bits of slots that are not in use may have any
  // value.
  void AddUnknown(RegionBits* may) const;
  void AddThoseWith(std::span<const Value> values, RegionBits* may) const;
  // The same by the ranges of values alone.
  void AddThoseThatCover(std::string_view value, RegionBits* may) const;
  // Some value with low <= value < high; no upper bound when `high` is empty.
  void AddThoseInRange(std::string_view low, std::string_view high, RegionBits* may) const;

  size_t SizeBytes() const;
  // By how much SizeBytes would grow if that many columns were given.
  size_t GrowthBytes(SplitGeometry geometry, size_t columns) const;

  // ---- Fewer slices

  // Values of SizeBytes and GrowthBytes if each matrix kept one slice.
  size_t LeastBytes() const;
  size_t LeastGrowthBytes(SplitGeometry geometry, size_t columns) const;
  // Makes a matrix of the geometry, if there is none, so that it can keep fewer slices before it
  // has columns.
  void Prepare(SplitGeometry geometry) { MatrixOf(geometry); }
  // Drops matrices without columns.
  void DropUnused();
  // The matrix of several slices whose last slice is cheapest to do without; nullptr: there is
  // none.
  Matrix* CheapestToCut() const;
  // How many more regions are asked in vain, of each that has a column, for each byte that becomes
  // free when the matrix keeps one slice less. The filters are taken to be half full.
  static double CostOfCut(const Matrix& matrix);
  // Columns of matrices that keep fewer slices than their filters have.
  size_t CoarseColumns() const;

 private:
  Matrix* MatrixOf(SplitGeometry geometry);
  size_t& WithoutColumns(SplitGeometry geometry);
  const Matrix* FindMatrix(SplitGeometry geometry) const;
  void PlaceOwners(Slot slot);

  std::vector<std::unique_ptr<Copy>> copies_;  // by slot
  size_t count_ = 0;
  RegionBits usable_;  // by slot
  ValueRanges ranges_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
  std::vector<std::pair<SplitGeometry, size_t>> without_columns_;  // so many copies
  CellCopies cells_;
};

}  // namespace tamis
