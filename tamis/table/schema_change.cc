#include "tamis/table/schema_change.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tamis {
namespace {

Result<TableSchema> Next(TableSchema schema) {
  ++schema.version;
  TAMIS_RETURN_IF_ERROR(schema.Validate());
  return schema;
}

// Schemas that are there already may expect more.
Status CheckExpectedValues(const IndexSpec& index) {
  constexpr uint64_t kGreatest = uint64_t{1} << 31;  // keys of the largest filter
  if (index.expected_values <= kGreatest) return Status::Ok();
  return InvalidArgument("cannot create index \"" + index.name +
                         "\": " + std::to_string(index.expected_values) +
                         " expected values of a region are more than the " +
                         std::to_string(kGreatest) + " (2^31) of the largest filter");
}

Status CheckNotForDropped(const Column& column) {
  if (!column.is_computed() || !IsDroppedColumnName(column.name)) return Status::Ok();
  return InvalidArgument("a computed column cannot have the name \"" + column.name +
                         "\", which is for a column that was dropped; choose another one");
}

std::vector<bool> ColumnsOf(const TableSchema& schema, const IndexSpec& index) {
  std::vector<bool> columns(schema.columns.size());
  for (const uint32_t column : index.columns) columns[column] = true;
  for (const uint32_t column : index.include) columns[column] = true;
  index.where.AddColumns(&columns);
  return columns;
}

void Renumber(const std::vector<uint32_t>& to, std::vector<uint32_t>* positions) {
  for (uint32_t& position : *positions) position = to[position];
}

void Renumber(const std::vector<uint32_t>& to, Predicate* predicate) {
  using Kind = Predicate::Kind;
  switch (predicate->kind) {
    case Kind::kCompare:
    case Kind::kIn:
    case Kind::kPrefix:
    case Kind::kIsNull:
    case Kind::kNotNull:
      predicate->column = to[predicate->column];
      break;
    default:
      break;
  }
  for (Predicate& child : predicate->children) Renumber(to, &child);
}

}  // namespace

Result<TableSchema> NewTable(TableSchema wanted, uint32_t table_id) {
  wanted.id = table_id;
  wanted.version = 1;
  wanted.next_column_id = 1;
  wanted.next_index_id = 1;
  for (Column& column : wanted.columns) {
    TAMIS_RETURN_IF_ERROR(CheckNotForDropped(column).WithContext("table \"" + wanted.name + "\""));
    column.id = wanted.next_column_id++;
  }
  for (IndexSpec& index : wanted.indexes) {
    TAMIS_RETURN_IF_ERROR(CheckExpectedValues(index));
    index.id = wanted.next_index_id++;
  }
  TAMIS_RETURN_IF_ERROR(wanted.Validate());
  return wanted;
}

Result<TableSchema> WithColumn(TableSchema schema, Column column) {
  const std::string what = "cannot add column \"" + column.name + "\"";
  if (schema.FindColumn(column.name).has_value()) {
    return AlreadyExists(what + ": table \"" + schema.name + "\" has one");
  }
  if (!column.nullable) {
    return InvalidArgument(what + ": a new column must be nullable, since rows without it exist");
  }
  TAMIS_RETURN_IF_ERROR(CheckNotForDropped(column).WithContext("table \"" + schema.name + "\""));
  const auto same = std::ranges::find_if(schema.columns, [&](const Column& dropped) {
    return dropped.is_dropped() && dropped.expression == column.expression;
  });
  if (same != schema.columns.end()) {
    same->name = std::move(column.name);
  } else {
    column.id = schema.next_column_id++;
    schema.columns.push_back(std::move(column));
  }
  return Next(std::move(schema));
}

Result<TableSchema> WithoutColumn(TableSchema schema, std::string_view column) {
  const std::string what =
      "cannot drop column \"" + std::string(column) + "\" of table \"" + schema.name + "\": ";
  const auto position = schema.FindColumn(column);
  if (!position) return NotFound(what + "the table has no such column");
  if (!schema.columns[*position].is_computed()) {
    return FailedPrecondition(what +
                              "it is not computed, and only computed columns can be dropped; make "
                              "a table without it, and fill that by INSERT INTO ... SELECT");
  }
  std::string indexes, commands;
  for (const IndexSpec& index : schema.indexes) {
    if (!ColumnsOf(schema, index)[*position]) continue;
    indexes += (indexes.empty() ? "\"" : ", \"") + index.name + "\"";
    commands +=
        (commands.empty() ? "" : "; ") + ("tamis index drop " + schema.name) + " " + index.name;
  }
  if (!indexes.empty()) {
    return FailedPrecondition(what + "it is used by index " + indexes +
                              "; drop that first: " + commands);
  }
  const std::string dropped = DroppedColumnName(schema.columns[*position].id);
  if (schema.FindColumn(dropped)) {
    return FailedPrecondition(what + "it would become \"" + dropped +
                              "\", and another column has that name");
  }
  schema.columns[*position].name = dropped;
  return Next(std::move(schema));
}

TableSchema WithoutDroppedColumns(const TableSchema& schema) {
  std::vector<bool> used(schema.columns.size());
  for (const IndexSpec& index : schema.indexes) {
    const std::vector<bool> of_index = ColumnsOf(schema, index);
    for (size_t i = 0; i < used.size(); ++i) used[i] = used[i] || of_index[i];
  }
  TableSchema shown = schema;
  shown.columns.clear();
  // Nothing refers to the positions that are left out: neither keys nor expressions can.
  std::vector<uint32_t> to(schema.columns.size(), std::numeric_limits<uint32_t>::max());
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    if (schema.columns[i].is_dropped() && !used[i]) continue;
    to[i] = static_cast<uint32_t>(shown.columns.size());
    shown.columns.push_back(schema.columns[i]);
  }
  for (Column& column : shown.columns) {
    if (column.is_computed()) column.expression->source = to[column.expression->source];
  }
  Renumber(to, &shown.key);
  for (IndexSpec& index : shown.indexes) {
    Renumber(to, &index.columns);
    Renumber(to, &index.include);
    Renumber(to, &index.where);
  }
  return shown;
}

Result<TableSchema> WithIndex(TableSchema schema, IndexSpec index) {
  if (schema.FindIndex(index.name) != nullptr) {
    return AlreadyExists("cannot create index \"" + index.name + "\": table \"" + schema.name +
                         "\" has one");
  }
  TAMIS_RETURN_IF_ERROR(CheckExpectedValues(index));
  index.id = schema.next_index_id++;
  schema.indexes.push_back(std::move(index));
  TAMIS_ASSIGN_OR_RETURN(TableSchema next, Next(std::move(schema)));
  const std::vector<bool> used = ColumnsOf(next, next.indexes.back());
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i] || !next.columns[i].is_dropped()) continue;
    return FailedPrecondition("cannot create index \"" + next.indexes.back().name +
                              "\": it names a column of table \"" + next.name +
                              "\" that was dropped meanwhile; read the table's schema again");
  }
  return next;
}

Result<TableSchema> WithCellMap(TableSchema schema, std::string_view index,
                                std::shared_ptr<const CellMap> map) {
  const IndexSpec* found = schema.FindIndex(index);
  if (found == nullptr) {
    return NotFound("cannot fit the cells of index \"" + std::string(index) + "\": table \"" +
                    schema.name + "\" has none");
  }
  schema.indexes[static_cast<size_t>(found - schema.indexes.data())].cell_map = std::move(map);
  return Next(std::move(schema));
}

Result<TableSchema> WithoutIndex(TableSchema schema, std::string_view index) {
  const IndexSpec* found = schema.FindIndex(index);
  if (found == nullptr) {
    return NotFound("cannot drop index \"" + std::string(index) + "\": table \"" + schema.name +
                    "\" has none");
  }
  schema.indexes.erase(schema.indexes.begin() + (found - schema.indexes.data()));
  return Next(std::move(schema));
}

}  // namespace tamis
