// MatrixBudget: the memory that all matrices of a coordinator may take together, and what is done
// without where it is short.
//
// Where there is no room, matrices keep fewer slices of all filters, until there is. A filter of
// one slice still answers "no" for half of the values that its region does not have; a filter that
// is left out never does.
//
// Threads: const members may run concurrently; MakeRoom needs exclusive access to the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "tamis/filter/split_geometry.h"
#include "tamis/routing/cell_copies.h"
#include "tamis/routing/index_copies.h"
#include "tamis/routing/routed_table.h"

namespace tamis {

class MatrixBudget {
 public:
  using Tables = std::map<uint32_t, RoutedTable>;  // by id
  using Lock = std::unique_lock<std::shared_mutex>;

  // The tables outlive it.
  MatrixBudget(const Tables& tables, size_t max_bytes) : tables_(tables), max_bytes_(max_bytes) {}

  // Whether these columns find room as the matrices are.
  bool HasRoom(const IndexCopies& copies, SplitGeometry geometry, size_t columns) const;
  // The same if all matrices keep one slice.
  bool CouldHaveRoom(const IndexCopies& copies, SplitGeometry geometry, size_t columns) const;
  // The same for the cells of one region; the table has so many slots.
  bool HasRoomForCells(const CellCopies& cells, TableLayout::Slot slot, size_t slots) const;

  // Makes room for these columns. False: that is not possible. Releases the lock, which guards the
  // tables, and locks it again on the way.
  bool MakeRoom(IndexCopies* copies, SplitGeometry geometry, size_t columns, Lock* lock) const;

  // Memory of all matrices.
  size_t SizeBytes() const;

 private:
  IndexCopies::Matrix* CheapestToCut() const;

  const Tables& tables_;
  const size_t max_bytes_;
};

}  // namespace tamis
