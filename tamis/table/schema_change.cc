#include "tamis/table/schema_change.h"

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

}  // namespace

Result<TableSchema> NewTable(TableSchema wanted, uint32_t table_id) {
  wanted.id = table_id;
  wanted.version = 1;
  wanted.next_column_id = 1;
  wanted.next_index_id = 1;
  for (Column& column : wanted.columns) column.id = wanted.next_column_id++;
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
  column.id = schema.next_column_id++;
  schema.columns.push_back(std::move(column));
  return Next(std::move(schema));
}

Result<TableSchema> WithIndex(TableSchema schema, IndexSpec index) {
  if (schema.FindIndex(index.name) != nullptr) {
    return AlreadyExists("cannot create index \"" + index.name + "\": table \"" + schema.name +
                         "\" has one");
  }
  TAMIS_RETURN_IF_ERROR(CheckExpectedValues(index));
  index.id = schema.next_index_id++;
  schema.indexes.push_back(std::move(index));
  return Next(std::move(schema));
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
