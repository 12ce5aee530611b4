#include "tamis/rocks/entry_rows.h"

#include <algorithm>

#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {

std::optional<EntryRows> EntryRows::For(const TableSchema& schema, const IndexSpec& index,
                                        const std::vector<bool>& needed, const Faults& faults) {
  for (uint32_t column = 0; column < needed.size(); ++column) {
    const bool known = schema.IsKey(column) ||
                       std::ranges::find(index.columns, column) != index.columns.end() ||
                       std::ranges::find(index.include, column) != index.include.end();
    if (needed[column] && !known && !faults.rows_from_any_entry) return std::nullopt;
  }
  return EntryRows(schema, index, faults);
}

std::optional<Row> EntryRows::Read(std::string_view values, std::string_view row_key,
                                   std::string_view included) const {
  Row row(schema_->columns.size());
  if (!included.empty() && !DecodeRow(*schema_, included, &row).ok()) return std::nullopt;
  for (const uint32_t column : index_->columns) {
    const auto value = ReadIndexed(schema_->columns[column].type, &values);
    if (!value.ok()) return std::nullopt;
    if (value->cut && !faults_->cut_values_taken) return std::nullopt;
    row[column] = value->value;
  }
  if (!values.empty()) return std::nullopt;
  if (!KeyFormat(*schema_).Decode(row_key, &row).ok()) return std::nullopt;
  return row;
}

}  // namespace tamis
