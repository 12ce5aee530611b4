#include "tamis/rocks/row_change.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"
#include "tamis/table/predicate.h"
#include "tamis/table/stored_row.h"

namespace tamis {

Status RowChange::Apply(const TableSchema& schema, const pb::Mutation& mutation) {
  if (!pb::Mutation::Kind_IsValid(mutation.kind())) {
    return InvalidArgument("this region server does not know mutations of kind " +
                           std::to_string(mutation.kind()));
  }
  Row row(schema.columns.size());
  if (!KeyFormat(schema).Decode(mutation.key(), &row).ok()) {
    return InvalidArgument("the row key is none of table \"" + schema.name +
                           "\": its bytes are not of the table's key format");
  }
  for (const Column& column : schema.columns) {
    if (column.is_computed() &&
        std::ranges::find(mutation.columns(), column.id) != mutation.columns().end()) {
      return InvalidArgument("column \"" + column.name + "\" of table \"" + schema.name +
                             "\" is computed from another one: set that one instead");
    }
  }
  if (!mutation.condition().empty()) {
    TAMIS_ASSIGN_OR_RETURN(const Predicate condition, ParsePredicate(mutation.condition()));
    TAMIS_RETURN_IF_ERROR(condition.Validate(schema));
    if (!after.has_value() || !condition.Matches(*after)) {
      return FailedPrecondition("the row is not as the condition says");
    }
  }
  if (mutation.kind() == pb::Mutation::DELETE) {
    if (after.has_value()) {
      TAMIS_ASSIGN_OR_RETURN(stored, DeleteStoredRow(schema, *stored));
    }
    after.reset();
    touched = true;
    return Status::Ok();
  }
  if (mutation.kind() == pb::Mutation::INSERT_IF_ABSENT && after.has_value()) {
    return AlreadyExists("a row with this key exists");
  }
  if (mutation.kind() == pb::Mutation::UPDATE && !after.has_value()) {
    return NotFound("no row with this key");
  }
  TAMIS_RETURN_IF_ERROR(DecodeRow(schema, mutation.row(), &row));
  std::optional<std::vector<uint32_t>> columns;  // that are set; nullopt = all
  if (mutation.kind() == pb::Mutation::UPDATE) {
    columns.emplace();
    Row merged = *after;
    for (uint32_t i = 0; i < schema.columns.size(); ++i) {
      if (!schema.IsKey(i) &&
          std::ranges::find(mutation.columns(), schema.columns[i].id) != mutation.columns().end()) {
        merged[i] = std::move(row[i]);
        columns->push_back(i);
      }
    }
    row = std::move(merged);
  }
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    if (row[i].is_null() && !schema.columns[i].nullable) {
      return InvalidArgument("column \"" + schema.columns[i].name + "\" of table \"" + schema.name +
                             "\" cannot be NULL");
    }
  }
  TAMIS_ASSIGN_OR_RETURN(stored, WriteStoredRow(schema, row, stored, columns));
  SetComputedColumns(schema, &row);
  after = std::move(row);
  touched = true;
  return Status::Ok();
}

}  // namespace tamis
