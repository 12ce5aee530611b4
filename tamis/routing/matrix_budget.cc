#include "tamis/routing/matrix_budget.h"

namespace tamis {

bool MatrixBudget::HasRoom(const IndexCopies& copies, SplitGeometry geometry,
                           size_t columns) const {
  const size_t growth = copies.GrowthBytes(geometry, columns);
  return growth == 0 || SizeBytes() + growth <= max_bytes_;
}

bool MatrixBudget::CouldHaveRoom(const IndexCopies& copies, SplitGeometry geometry,
                                 size_t columns) const {
  if (HasRoom(copies, geometry, columns)) return true;
  size_t size = copies.LeastGrowthBytes(geometry, columns);
  for (const auto& [id, table] : tables_) {
    for (const auto& [index_id, others] : table.indexes) size += others.LeastBytes();
  }
  return size <= max_bytes_;
}

IndexCopies::Matrix* MatrixBudget::CheapestToCut() const {
  IndexCopies::Matrix* cheapest = nullptr;
  for (const auto& [id, table] : tables_) {
    for (const auto& [index_id, copies] : table.indexes) {
      IndexCopies::Matrix* const other = copies.CheapestToCut();
      if (other == nullptr) continue;
      if (cheapest == nullptr ||
          IndexCopies::CostOfCut(*other) < IndexCopies::CostOfCut(*cheapest)) {
        cheapest = other;
      }
    }
  }
  return cheapest;
}

bool MatrixBudget::MakeRoom(IndexCopies* copies, SplitGeometry geometry, size_t columns,
                            Lock* lock) const {
  if (HasRoom(*copies, geometry, columns)) return true;
  if (!CouldHaveRoom(*copies, geometry, columns)) return false;
  while (!HasRoom(*copies, geometry, columns)) {
    copies->Prepare(geometry);
    IndexCopies::Matrix* const matrix = CheapestToCut();
    if (matrix == nullptr) {
      copies->DropUnused();
      return false;
    }
    auto rest = matrix->bits.KeepSlices(matrix->bits.geometry().slices - 1);
    // Giving memory back takes long, and needs no lock.
    lock->unlock();
    rest.clear();
    lock->lock();
  }
  return true;
}

bool MatrixBudget::HasRoomForCells(const CellCopies& cells, TableLayout::Slot slot,
                                   size_t slots) const {
  const size_t growth = cells.GrowthBytes(slot, slots);
  return growth == 0 || SizeBytes() + growth <= max_bytes_;
}

size_t MatrixBudget::SizeBytes() const {
  size_t size = 0;
  for (const auto& [id, table] : tables_) size += table.SizeBytes();
  return size;
}

}  // namespace tamis
