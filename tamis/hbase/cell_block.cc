#include "tamis/hbase/cell_block.h"

#include <cassert>

#include "tamis/base/coding.h"

namespace tamis::hbase {
namespace {

// The fixed part of a key: row size, family size, timestamp, type.
constexpr size_t kFixedKeyBytes = 2 + 1 + 8 + 1;

}  // namespace

void AppendCell(std::string_view row, const Cell& cell, std::string* block) {
  assert(row.size() <= kMaxRowBytes && cell.family.size() <= kMaxFamilyBytes);
  const size_t key = kFixedKeyBytes + row.size() + cell.family.size() + cell.qualifier.size();
  PutBig32(block, static_cast<uint32_t>(8 + key + cell.value.size()));
  PutBig32(block, static_cast<uint32_t>(key));
  PutBig32(block, static_cast<uint32_t>(cell.value.size()));
  block->push_back(static_cast<char>(row.size() >> 8));
  block->push_back(static_cast<char>(row.size()));
  block->append(row);
  block->push_back(static_cast<char>(cell.family.size()));
  block->append(cell.family);
  block->append(cell.qualifier);
  PutBig64(block, static_cast<uint64_t>(cell.timestamp));
  block->push_back(static_cast<char>(cell.type));
  block->append(cell.value);
}

std::optional<RowAndCell> TakeCell(std::string_view* block) {
  Reader reader(*block);
  const uint32_t size = reader.Big32();
  Reader cell(reader.Bytes(size));
  const uint32_t key_size = cell.Big32();
  const uint32_t value_size = cell.Big32();
  Reader key(cell.Bytes(key_size));
  RowAndCell out;
  out.cell.value = cell.Bytes(value_size);
  const uint8_t high = key.Byte();
  const size_t row_size = size_t{high} << 8 | key.Byte();
  out.row = key.Bytes(row_size);
  out.cell.family = key.Bytes(key.Byte());
  // A server that ignores the codec may send tags behind the value; they are skipped.
  if (!reader.ok() || !cell.ok() || !key.ok() || key.rest().size() < 9) return {};
  // HBase's signed size fields cannot hold larger values.
  if (out.row.size() > kMaxRowBytes || out.cell.family.size() > kMaxFamilyBytes) return {};
  out.cell.qualifier = key.Bytes(key.rest().size() - 9);
  out.cell.timestamp = static_cast<int64_t>(key.Big64());
  out.cell.type = static_cast<CellType>(key.Byte());
  *block = reader.rest();
  return out;
}

}  // namespace tamis::hbase
