#include "tamis/table/stored_row.h"

#include <algorithm>

#include "tamis/base/coding.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

Status DamagedCells() {
  return DataLoss("cannot decode a row of cells: the bytes are damaged or foreign");
}

const Cell* Find(const std::vector<Cell>& cells, const CellName& name) {
  const auto found = std::ranges::lower_bound(cells, name, {}, &Cell::name);
  return found != cells.end() && found->name == name ? &*found : nullptr;
}

// Sets the cell, or takes it away.
void Set(const CellName& name, std::optional<std::string> value, std::vector<Cell>* cells) {
  auto found = std::ranges::lower_bound(*cells, name, {}, &Cell::name);
  const bool there = found != cells->end() && found->name == name;
  if (!value.has_value()) {
    if (there) cells->erase(found);
  } else if (there) {
    found->value = *std::move(value);
  } else {
    cells->insert(found, Cell{name, *std::move(value)});
  }
}

bool Exists(const TableSchema& schema, const std::vector<Cell>& cells) {
  return std::ranges::any_of(cells,
                             [&](const Cell& cell) { return schema.HasFamily(cell.name.family); });
}

Status ReadCells(const TableSchema& schema, std::string_view stored, StoredRow* out) {
  TAMIS_ASSIGN_OR_RETURN(const std::vector<Cell> cells, DecodeCells(stored));
  if (!Exists(schema, cells)) return Status::Ok();
  out->state = StoredRow::State::kRow;
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const Column& column = schema.columns[i];
    if (column.encoding == CellEncoding::kNone) continue;  // in the key, or computed
    const Cell* cell = Find(cells, column.cell);
    if (cell == nullptr) continue;
    if (auto value = DecodeCell(column.type, column.encoding, cell->value)) {
      out->row[i] = *std::move(value);
    } else {
      ++out->undecodable;
    }
  }
  return Status::Ok();
}

std::string EncodeStored(const TableSchema& schema, const Row& row) {
  if (!schema.HasComputedColumns()) return EncodeRow(schema, row);
  Row stored = row;
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    if (schema.columns[i].is_computed()) stored[i] = Value();
  }
  return EncodeRow(schema, stored);
}

}  // namespace

std::string EncodeCells(const std::vector<Cell>& cells) {
  std::string out;
  for (const Cell& cell : cells) {
    PutLengthPrefixed(&out, cell.name.family);
    PutLengthPrefixed(&out, cell.name.qualifier);
    PutLengthPrefixed(&out, cell.value);
  }
  return out;
}

Result<std::vector<Cell>> DecodeCells(std::string_view bytes) {
  std::vector<Cell> cells;
  Reader reader(bytes);
  while (reader.ok() && !reader.rest().empty()) {
    Cell cell;
    cell.name.family = reader.LengthPrefixed();
    cell.name.qualifier = reader.LengthPrefixed();
    cell.value = reader.LengthPrefixed();
    if (!reader.ok() || (!cells.empty() && cells.back().name >= cell.name)) return DamagedCells();
    cells.push_back(std::move(cell));
  }
  return cells;
}

void SetComputedColumns(const TableSchema& schema, Row* row) {
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const auto& expression = schema.columns[i].expression;
    if (expression.has_value()) (*row)[i] = expression->Evaluate((*row)[expression->source]);
  }
}

Result<StoredRow> ReadStoredRow(const TableSchema& schema, std::string_view key,
                                std::string_view stored) {
  StoredRow out;
  out.row.resize(schema.columns.size());
  if (!KeyFormat(schema).Decode(key, &out.row).ok()) {
    out.state = StoredRow::State::kForeignKey;
    return out;
  }
  if (schema.cells) {
    TAMIS_RETURN_IF_ERROR(ReadCells(schema, stored, &out));
  } else {
    TAMIS_RETURN_IF_ERROR(DecodeRow(schema, stored, &out.row));
    out.state = StoredRow::State::kRow;
  }
  SetComputedColumns(schema, &out.row);
  return out;
}

Result<std::string> WriteStoredRow(const TableSchema& schema, const Row& row,
                                   const std::optional<std::string>& before,
                                   const std::optional<std::vector<uint32_t>>& columns) {
  if (!schema.cells) return EncodeStored(schema, row);
  std::vector<Cell> cells;
  if (before.has_value()) {
    TAMIS_ASSIGN_OR_RETURN(cells, DecodeCells(*before));
  }
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const Column& column = schema.columns[i];
    if (column.encoding == CellEncoding::kNone) continue;
    if (columns.has_value() && std::ranges::find(*columns, i) == columns->end()) continue;
    std::optional<std::string> value;
    if (!row[i].is_null()) {
      auto encoded = EncodeCell(column.encoding, row[i]);
      if (!encoded.ok()) return encoded.status().WithContext("column \"" + column.name + "\"");
      value = *std::move(encoded);
    }
    Set(column.cell, std::move(value), &cells);
  }
  if (schema.marker && Find(cells, *schema.marker) == nullptr) Set(*schema.marker, "", &cells);
  if (!Exists(schema, cells)) {
    return InvalidArgument("a row of table \"" + schema.name +
                           "\" without any value cannot be: its rows are cells, and the table has "
                           "no marker cell; give a column a value, or delete the row");
  }
  return EncodeCells(cells);
}

Result<std::optional<std::string>> DeleteStoredRow(const TableSchema& schema,
                                                   const std::string& before) {
  if (!schema.cells) return std::optional<std::string>();
  TAMIS_ASSIGN_OR_RETURN(std::vector<Cell> cells, DecodeCells(before));
  std::erase_if(cells, [&](const Cell& cell) { return schema.HasFamily(cell.name.family); });
  if (cells.empty()) return std::optional<std::string>();
  return std::optional<std::string>(EncodeCells(cells));
}

}  // namespace tamis
