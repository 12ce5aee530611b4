#include "tamis/hbase/row.h"

#include <algorithm>

#include "tamis/hbase/printable.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

// The smallest cell in a cell block. An announced number of cells that cannot fit is an error.
constexpr size_t kLeastCellBytes = 4 + 8 + 12;

}  // namespace

std::optional<std::string_view> Row::Find(std::string_view family,
                                          std::string_view qualifier) const {
  const auto found = std::ranges::find_if(cells_, [&](const Cell& cell) {
    return cell.family == family && cell.qualifier == qualifier;
  });
  if (found == cells_.end()) return {};
  return found->value;
}

size_t Row::size_bytes() const {
  size_t size = key_.size();
  for (const Cell& cell : cells_) {
    size += cell.family.size() + cell.qualifier.size() + cell.value.size() + sizeof(Cell);
  }
  return size;
}

Result<Row> TakeRow(size_t count, std::string_view* cells,
                    const std::shared_ptr<const std::string>& bytes) {
  if (count > cells->size() / kLeastCellBytes) {
    return DataLoss("an answer announces " + std::to_string(count) + " cells in " +
                    std::to_string(cells->size()) + " bytes");
  }
  std::vector<Cell> row;
  row.reserve(count);
  std::string_view key;
  for (size_t i = 0; i < count; ++i) {
    const auto cell = TakeCell(cells);
    if (!cell) return DataLoss("an answer with a damaged cell");
    if (i == 0) key = cell->row;
    if (cell->row != key) return DataLoss("an answer with cells of two rows in one result");
    row.push_back(cell->cell);
  }
  return Row(key, std::move(row), bytes);
}

Result<Row> TakeRow(const pb::Result& result, std::string_view* cells,
                    const std::shared_ptr<const std::string>& bytes) {
  if (result.cell_size() == 0) {
    return TakeRow(static_cast<size_t>(std::max(0, result.associated_cell_count())), cells, bytes);
  }
  auto block = std::make_shared<std::string>();
  for (const pb::Cell& cell : result.cell()) {
    if (cell.row().size() > kMaxRowBytes || cell.family().size() > kMaxFamilyBytes) {
      return DataLoss("an answer with a row or family that is too long");
    }
    AppendCell(cell.row(),
               {.family = cell.family(),
                .qualifier = cell.qualifier(),
                .timestamp = static_cast<int64_t>(cell.timestamp()),
                .type = static_cast<CellType>(cell.cell_type()),
                .value = cell.value()},
               block.get());
  }
  std::string_view rest = *block;
  return TakeRow(static_cast<size_t>(result.cell_size()), &rest, block);
}

Result<Row> WithKey(std::string_view key, Result<Row> row) {
  if (!row.ok() || row->empty() || row->key() == key) return row;
  return DataLoss("an answer with row " + Printable(row->key()) + ", where " + Printable(key) +
                  " was asked for");
}

Row JoinParts(const std::vector<Row>& parts) {
  auto block = std::make_shared<std::string>();
  size_t count = 0;
  for (const Row& part : parts) {
    for (const Cell& cell : part.cells()) AppendCell(part.key(), cell, block.get());
    count += part.cells().size();
  }
  std::string_view rest = *block;
  auto row = TakeRow(count, &rest, block);
  return row.ok() ? *std::move(row) : Row();  // cannot fail: the block was just written
}

}  // namespace tamis::hbase
