// CellMatrix: which cells of one cell map each region has a value in, transposed, so that one
// question answers for all regions at once.
//
// A row is a cell, a column is a region. A range of values is a range of cells; the OR of their
// rows has a bit for every region that may hold a value of the range. A summary row is the OR of 64
// rows, and so on until there are few, so that a range of any width reads at most 126 rows a level.
//
//   Memory   one bit per cell and column, and a 63rd more for the summaries
//   AddAnyIn 128 bytes for each 1,024 columns and row
//   Threads  const members may run concurrently; others need exclusive access
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tamis/routing/filter_matrix.h"

namespace tamis {

class CellMatrix {
 public:
  using Column = uint32_t;  // chosen by the caller; they are dense

  // REQUIRES: cells > 0.
  explicit CellMatrix(uint32_t cells);

  uint32_t cells() const { return cells_; }
  size_t columns() const { return levels_.front().columns(); }
  // Makes room for the columns below this one; new ones are zeros.
  void Reserve(size_t columns);

  // The bits of a column in one level, 0 being the cells themselves. A column is loaded by loading
  // each level of it (FilterMatrix::Load), before any search may rely on it.
  size_t levels() const { return levels_.size(); }
  FilterMatrix& level(size_t i) { return levels_[i]; }
  // The bits of the level above, from those of a level.
  static std::vector<uint64_t> Summary(std::span<const uint64_t> words);
  // All levels at once.
  void Load(Column column, std::span<const uint64_t> words);

  void Set(Column column, uint32_t cell, bool value);
  bool Get(Column column, uint32_t cell) const { return levels_[0].Get(column, cell); }

  // Sets bit c % 64 of word c / 64 where column c has some cell of [first, last] set. REQUIRES:
  // first <= last < cells(), columns() / 64 words.
  void AddAnyIn(uint32_t first, uint32_t last, std::span<uint64_t> columns) const;

  size_t SizeBytes() const;
  // By how much that would grow by Reserve(columns).
  size_t GrowthBytes(size_t columns) const;

 private:
  size_t Reserved(size_t columns) const;

  uint32_t cells_;
  std::vector<FilterMatrix> levels_;
};

}  // namespace tamis
