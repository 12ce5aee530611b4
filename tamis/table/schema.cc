#include "tamis/table/schema.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "tamis/base/ascii.h"
#include "tamis/table/escape.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

constexpr size_t kMaxNameSize = 128;
constexpr size_t kMaxColumns = 1000;  // SQLite takes 2000, some of which we hide
constexpr size_t kMaxIndexes = 64;
constexpr size_t kMaxKeyColumns = 16;
constexpr size_t kMaxConditionDepth =
    20;  // the depth for an index; protobuf reads 100 levels in all
constexpr size_t kMaxFamilySize = 127;
constexpr size_t kMaxQualifierSize = 1024;
constexpr std::string_view kDroppedColumn = "dropped_column_";

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameSize && !IsDigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_'; });
}

Status CheckName(std::string_view what, std::string_view name) {
  if (!IsName(name)) {
    return InvalidArgument(
        std::string(what) + " name \"" + std::string(name.substr(0, 60)) +
        "\" is not usable: names are of a-z, 0-9 and _, begin with no digit, and "
        "have at most 128 characters");
  }
  if (name.starts_with("tamis_") || name.starts_with("sqlite_")) {
    return InvalidArgument(std::string(what) + " name \"" + std::string(name) +
                           "\" is reserved: choose one that does not begin with tamis_ or sqlite_");
  }
  return Status::Ok();
}

Status CheckColumnList(const TableSchema& schema, const std::string& what,
                       const std::vector<uint32_t>& positions) {
  if (positions.empty() || positions.size() > kMaxKeyColumns) {
    return InvalidArgument(what + " has " + std::to_string(positions.size()) +
                           " columns; it needs 1 to " + std::to_string(kMaxKeyColumns));
  }
  std::set<uint32_t> seen;
  for (const uint32_t position : positions) {
    if (position >= schema.columns.size()) {
      return InvalidArgument(what + " refers to column number " + std::to_string(position) +
                             ", which the table does not have");
    }
    if (!seen.insert(position).second) {
      return InvalidArgument(what + " names column \"" + schema.columns[position].name +
                             "\" twice");
    }
  }
  return Status::Ok();
}

Status CheckCellName(const std::string& what, const CellName& cell) {
  if (cell.family.empty() || cell.family.size() > kMaxFamilySize ||
      cell.qualifier.size() > kMaxQualifierSize) {
    return InvalidArgument(what +
                           " needs a cell FAMILY:QUALIFIER; a family has 1 to 127 bytes, a "
                           "qualifier at most 1024");
  }
  return Status::Ok();
}

size_t Depth(const Predicate& predicate) {
  size_t below = 0;
  for (const Predicate& child : predicate.children) below = std::max(below, Depth(child));
  return below + 1;
}

Status CheckIncluded(const TableSchema& schema, const std::string& what, const IndexSpec& index) {
  if (index.include.empty()) return Status::Ok();
  TAMIS_RETURN_IF_ERROR(
      CheckColumnList(schema, what + ": its list of included columns", index.include));
  for (const uint32_t position : index.include) {
    const bool indexed =
        std::find(index.columns.begin(), index.columns.end(), position) != index.columns.end();
    if (!indexed && !schema.IsKey(position)) continue;
    return InvalidArgument(what + " includes column \"" + schema.columns[position].name +
                           "\", which its entries have already because it is " +
                           (indexed ? "indexed" : "in the key"));
  }
  return Status::Ok();
}

Status CheckCondition(const TableSchema& schema, const std::string& what, const IndexSpec& index) {
  if (!index.IsPartial()) return Status::Ok();
  if (Depth(index.where) > kMaxConditionDepth) {
    return InvalidArgument(what + ": its condition is nested more than " +
                           std::to_string(kMaxConditionDepth) + " deep; write it flatter");
  }
  return index.where.Validate(schema).WithContext(what);
}

// Checks the properties of columns that only a table of cells has.
Status CheckCells(const TableSchema& schema, const std::string& in_table) {
  std::set<CellName> names;
  if (schema.marker) {
    if (!schema.cells) return InvalidArgument(in_table + "only rows of cells have a marker");
    TAMIS_RETURN_IF_ERROR(CheckCellName(in_table + "the marker", *schema.marker));
    names.insert(*schema.marker);
  }
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const Column& column = schema.columns[i];
    const std::string what = in_table + "column \"" + column.name + "\"";
    if (!schema.cells || schema.IsKey(i) || column.is_computed()) {
      if (column.cell != CellName() || column.encoding != CellEncoding::kNone) {
        return InvalidArgument(what + " has a cell, but " +
                               (column.is_computed() ? "is computed"
                                : schema.cells       ? "is in the key"
                                                     : "the table's rows are not cells"));
      }
      continue;
    }
    TAMIS_RETURN_IF_ERROR(CheckCellName(what, column.cell));
    if (!IsEncodingOf(column.type, column.encoding)) {
      return InvalidArgument(what + " of type " + std::string(TypeName(column.type)) +
                             " has no encoding " + std::string(EncodingName(column.encoding)));
    }
    if (!column.nullable) {
      return InvalidArgument(what + " must be nullable: a cell that does not decode is NULL");
    }
    if (!names.insert(column.cell).second) {
      return InvalidArgument(what + " has the cell of another column, or of the marker");
    }
  }
  if (schema.cells && names.empty()) {
    return InvalidArgument(in_table + "its rows have no cell: add a column or a marker");
  }
  return Status::Ok();
}

Status CheckExpressions(const TableSchema& schema, const std::string& in_table) {
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const Column& column = schema.columns[i];
    if (!column.is_computed()) continue;
    const Expression& expression = *column.expression;
    const std::string what = in_table + "computed column \"" + column.name + "\"";
    TAMIS_RETURN_IF_ERROR(expression.Validate().WithContext(what));
    if (schema.IsKey(i)) return InvalidArgument(what + " must not be in the key");
    if (!column.nullable) return InvalidArgument(what + " must be nullable");
    if (expression.source >= schema.columns.size()) {
      return InvalidArgument(what + " refers to column number " +
                             std::to_string(expression.source) + ", which the table does not have");
    }
    const Column& source = schema.columns[expression.source];
    const std::string text = expression.ToString(source.name);
    if (source.is_computed()) {
      return InvalidArgument(what + " = " + text + ": \"" + source.name +
                             "\" is computed itself; name the column that it is computed from");
    }
    if (source.type != expression.ArgumentType()) {
      return InvalidArgument(what + " = " + text + " needs a column of type " +
                             std::string(TypeName(expression.ArgumentType())) + ", but \"" +
                             source.name + "\" is of type " + std::string(TypeName(source.type)));
    }
    if (column.type != expression.ResultType()) {
      return InvalidArgument(what + " = " + text + " is of type " +
                             std::string(TypeName(expression.ResultType())) + ", not " +
                             std::string(TypeName(column.type)));
    }
  }
  return Status::Ok();
}

Status CheckKeyParts(const TableSchema& schema, const std::string& in_table) {
  if (schema.key_parts.empty()) return Status::Ok();
  if (schema.key_parts.size() != schema.key.size()) {
    return InvalidArgument(in_table + "the key has " + std::to_string(schema.key.size()) +
                           " columns and " + std::to_string(schema.key_parts.size()) + " parts");
  }
  for (size_t i = 0; i < schema.key.size(); ++i) {
    const Column& column = schema.columns[schema.key[i]];
    TAMIS_RETURN_IF_ERROR(schema.key_parts[i]
                              .Validate(column.type)
                              .WithContext(in_table + "key column \"" + column.name + "\""));
    if (schema.key_parts[i].form == KeyPart::Form::kRest && i + 1 < schema.key.size()) {
      return InvalidArgument(in_table + "key column \"" + column.name +
                             "\" is the rest of the key, but columns follow");
    }
  }
  return Status::Ok();
}

std::string ColumnNames(const TableSchema& schema, const std::vector<uint32_t>& positions) {
  std::string out;
  for (const uint32_t position : positions) {
    if (!out.empty()) out += ", ";
    out += position < schema.columns.size() ? schema.columns[position].name : "?";
  }
  return out;
}

// "host 'until=|', at phoenix_date"
std::string KeyText(const TableSchema& schema) {
  std::string out;
  for (size_t i = 0; i < schema.key.size() && i < schema.key_parts.size(); ++i) {
    if (schema.key[i] >= schema.columns.size()) continue;
    const Column& column = schema.columns[schema.key[i]];
    out += (i == 0 ? "" : ", ") + column.name;
    if (schema.key_parts[i].form == KeyPart::Form::kOrdered) continue;
    out += " '" + KeyPartText(column.type, schema.key_parts[i]) + "'";
  }
  return out;
}

}  // namespace

std::string DroppedColumnName(uint32_t id) {
  return std::string(kDroppedColumn) + std::to_string(id);
}

bool IsDroppedColumnName(std::string_view name) {
  if (!name.starts_with(kDroppedColumn)) return false;
  name.remove_prefix(kDroppedColumn.size());
  return !name.empty() && std::ranges::all_of(name, IsDigit);
}

bool Column::is_dropped() const { return is_computed() && name == DroppedColumnName(id); }

std::string CellNameText(const CellName& name) {
  return Escape(name.family, ":,()") + ":" + Escape(name.qualifier, ":,()");
}

Status ParseCell(std::string_view text, Column* column) {
  const auto unreadable = [&](const std::string& why) {
    return InvalidArgument("cannot read cell \"" + std::string(text.substr(0, 60)) +
                           "\" of column \"" + column->name + "\": " + why);
  };
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return unreadable("write FAMILY:QUALIFIER[:ENCODING]");
  const std::string_view behind = text.substr(colon + 1);
  const size_t second = behind.find(':');
  const auto family = Unescape(text.substr(0, colon));
  const auto qualifier = Unescape(behind.substr(0, second));
  if (!family || !qualifier) {
    return unreadable("a backslash begins \\xNN, a byte in hexadecimal");
  }
  column->cell = {*family, *qualifier};
  column->encoding = DefaultEncoding(column->type);
  if (second == std::string_view::npos) return Status::Ok();
  const auto encoding = ParseEncoding(behind.substr(second + 1));
  if (!encoding.ok()) return unreadable(encoding.status().message());
  column->encoding = *encoding;
  return Status::Ok();
}

std::optional<uint32_t> TableSchema::FindColumn(std::string_view column) const {
  for (uint32_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column && !columns[i].is_dropped()) return i;
  }
  return std::nullopt;
}

const IndexSpec* TableSchema::FindIndex(std::string_view index) const {
  for (const IndexSpec& spec : indexes) {
    if (spec.name == index) return &spec;
  }
  return nullptr;
}

const IndexSpec* TableSchema::FindIndex(uint32_t index_id) const {
  for (const IndexSpec& spec : indexes) {
    if (spec.id == index_id) return &spec;
  }
  return nullptr;
}

bool TableSchema::IsKey(uint32_t column) const {
  return std::find(key.begin(), key.end(), column) != key.end();
}

bool TableSchema::HasComputedColumns() const {
  return std::ranges::any_of(columns, &Column::is_computed);
}

bool TableSchema::HasFamily(std::string_view family) const {
  if (marker && marker->family == family) return true;
  return std::any_of(columns.begin(), columns.end(), [&](const Column& column) {
    return column.encoding != CellEncoding::kNone && column.cell.family == family;
  });
}

Status TableSchema::Validate() const {
  TAMIS_RETURN_IF_ERROR(CheckName("table", name));
  const std::string in_table = "table \"" + name + "\": ";
  if (columns.empty() || columns.size() > kMaxColumns) {
    return InvalidArgument(in_table + "it has " + std::to_string(columns.size()) +
                           " columns; it needs 1 to " + std::to_string(kMaxColumns));
  }
  if (indexes.size() > kMaxIndexes) {
    return InvalidArgument(in_table + "it has " + std::to_string(indexes.size()) +
                           " indexes, more than " + std::to_string(kMaxIndexes));
  }
  std::set<std::string> names;
  std::set<uint32_t> ids;  // 0 = not given yet
  for (const Column& column : columns) {
    TAMIS_RETURN_IF_ERROR(CheckName("column", column.name).WithContext("table \"" + name + "\""));
    if (!names.insert(column.name).second) {
      return InvalidArgument(in_table + "it has two columns \"" + column.name + "\"");
    }
    if (column.id != 0 && (!ids.insert(column.id).second || column.id >= next_column_id)) {
      return InvalidArgument(in_table + "column \"" + column.name + "\" has the id " +
                             std::to_string(column.id) + ", which is taken or not given out yet");
    }
    if (column.type < Type::kText || column.type > Type::kDecimal) {
      return InvalidArgument(in_table + "column \"" + column.name + "\" has the unknown type " +
                             std::to_string(static_cast<int>(column.type)));
    }
  }
  TAMIS_RETURN_IF_ERROR(CheckColumnList(*this, in_table + "the key", key));
  for (const uint32_t position : key) {
    if (columns[position].nullable) {
      return InvalidArgument(in_table + "key column \"" + columns[position].name +
                             "\" must not be nullable");
    }
  }
  TAMIS_RETURN_IF_ERROR(CheckExpressions(*this, in_table));
  TAMIS_RETURN_IF_ERROR(CheckKeyParts(*this, in_table));
  TAMIS_RETURN_IF_ERROR(CheckCells(*this, in_table));
  names.clear();
  ids.clear();
  for (const IndexSpec& index : indexes) {
    TAMIS_RETURN_IF_ERROR(CheckName("index", index.name).WithContext("table \"" + name + "\""));
    const std::string what = in_table + "index \"" + index.name + "\"";
    if (!names.insert(index.name).second) return InvalidArgument(what + " is given twice");
    if (index.id != 0 && (!ids.insert(index.id).second || index.id >= next_index_id)) {
      return InvalidArgument(what + " has the id " + std::to_string(index.id) +
                             ", which is taken or not given out yet");
    }
    if (index.nulls > IndexNulls::kSkip) {
      return InvalidArgument(what + " treats NULL in an unknown way");
    }
    TAMIS_RETURN_IF_ERROR(CheckColumnList(*this, what, index.columns));
    if (!(index.fpr >= 1e-9 && index.fpr <= 0.5)) {
      return InvalidArgument(what + ": the false-positive rate must lie between 1e-9 and 0.5");
    }
    if (index.expected_values < 1 || index.expected_values > (uint64_t{1} << 32)) {
      return InvalidArgument(what + ": the expected distinct values must lie between 1 and 2^32");
    }
    TAMIS_RETURN_IF_ERROR(CheckIncluded(*this, what, index));
    TAMIS_RETURN_IF_ERROR(CheckCondition(*this, what, index));
  }
  return Status::Ok();
}

std::string TableSchema::ToString() const {
  std::string out = "table " + name + " (\n";
  for (const Column& column : columns) {
    if (column.is_dropped()) continue;
    out += "  " + column.name + " " + std::string(TypeName(column.type));
    if (!column.nullable) out += " not null";
    if (column.encoding != CellEncoding::kNone) {
      out += " cell '" + CellNameText(column.cell) + ":" +
             std::string(EncodingName(column.encoding)) + "'";
    }
    if (column.is_computed()) {
      out += " = " + column.expression->ToString(columns[column.expression->source].name);
    }
    out += ",\n";
  }
  out += "  key (" + (key_parts.empty() ? ColumnNames(*this, key) : KeyText(*this)) + ")";
  if (cells) out += ",\n  marker '" + (marker ? CellNameText(*marker) : "none") + "'";
  for (const IndexSpec& index : indexes) {
    char fpr[32];
    const auto [end, error] = std::to_chars(fpr, fpr + sizeof(fpr), index.fpr);
    out += ",\n  index " + index.name + " (" + ColumnNames(*this, index.columns) + ") fpr " +
           std::string(fpr, end) + " expected_values " + std::to_string(index.expected_values);
    if (index.nulls == IndexNulls::kSkip) out += " nulls skip";
    if (!index.include.empty()) out += " include (" + ColumnNames(*this, index.include) + ")";
    if (index.IsPartial()) out += " where " + index.where.ToString(*this);
    if (index.cell_map != nullptr) {
      out += " ranges";
      // The cells for each value are known of an index that waits for its fit.
      const CellMap& map = *index.cell_map;
      if (!IsFitted(map)) out += " " + std::to_string(CellsPerValueFor(&map));
    }
  }
  return out + "\n)";
}

}  // namespace tamis
