#include "tamis/routing/cell_matrix.h"

#include <algorithm>
#include <cassert>

namespace tamis {
namespace {

constexpr uint64_t kFan = 64;  // rows that a summary row stands for

SplitGeometry Rows(uint64_t rows) {
  return {.slices = 1, .slice_positions = static_cast<uint32_t>(rows)};
}

}  // namespace

CellMatrix::CellMatrix(uint32_t cells) : cells_(cells) {
  uint64_t rows = cells;
  levels_.emplace_back(Rows(rows));
  while (rows > kFan) {
    rows = (rows + kFan - 1) / kFan;
    levels_.emplace_back(Rows(rows));
  }
}

// At least an eighth more than there are, so that columns which come one by one do not make many
// small blocks.
size_t CellMatrix::Reserved(size_t columns) const {
  const size_t there = this->columns();
  return columns <= there ? there : std::max(columns, there + there / 8);
}

void CellMatrix::Reserve(size_t columns) {
  columns = Reserved(columns);
  for (FilterMatrix& level : levels_) level.Reserve(columns);
}

std::vector<uint64_t> CellMatrix::Summary(std::span<const uint64_t> words) {
  std::vector<uint64_t> summary((words.size() + 63) / 64);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != 0) summary[i / 64] |= uint64_t{1} << (i % 64);
  }
  return summary;
}

void CellMatrix::Load(Column column, std::span<const uint64_t> words) {
  std::vector<uint64_t> bits(words.begin(), words.end());
  for (FilterMatrix& level : levels_) {
    level.Load(column, bits);
    bits = Summary(bits);
  }
}

void CellMatrix::Set(Column column, uint32_t cell, bool value) {
  uint64_t row = cell;
  levels_[0].Set(column, row, value);
  for (size_t i = 1; i < levels_.size(); ++i) {
    const uint64_t first = row / kFan * kFan;
    const uint64_t last = std::min(first + kFan, levels_[i - 1].geometry().positions());
    for (uint64_t r = first; !value && r < last; ++r) value = levels_[i - 1].Get(column, r);
    row /= kFan;
    levels_[i].Set(column, row, value);
  }
}

void CellMatrix::AddAnyIn(uint32_t first, uint32_t last, std::span<uint64_t> columns) const {
  assert(first <= last && last < cells_);
  uint64_t begin = first;
  uint64_t end = uint64_t{last} + 1;
  for (size_t i = 0; i < levels_.size(); ++i) {
    const uint64_t inner_begin = (begin + kFan - 1) / kFan;
    // The last summary row may stand for less than 64 rows.
    const bool to_the_end = end == levels_[i].geometry().positions();
    const uint64_t inner_end = to_the_end ? (end + kFan - 1) / kFan : end / kFan;
    if (i + 1 == levels_.size() || inner_begin >= inner_end) {
      levels_[i].AddAnyIn(begin, end, columns);
      return;
    }
    levels_[i].AddAnyIn(begin, inner_begin * kFan, columns);
    if (inner_end * kFan < end) levels_[i].AddAnyIn(inner_end * kFan, end, columns);
    begin = inner_begin;
    end = inner_end;
  }
}

size_t CellMatrix::SizeBytes() const {
  size_t size = 0;
  for (const FilterMatrix& level : levels_) size += level.SizeBytes();
  return size;
}

size_t CellMatrix::GrowthBytes(size_t columns) const {
  columns = Reserved(columns);
  size_t size = 0;
  for (const FilterMatrix& level : levels_) size += level.ReserveBytes(columns);
  return size;
}

}  // namespace tamis
