#include "tamis/cli/record_rows.h"

#include <fmt/format.h>

#include "tamis/base/utf8.h"

namespace tamis {

RecordRows::RecordRows(SchemaPtr schema) : schema_(std::move(schema)) {
  given_.resize(schema_->columns.size());
  for (uint32_t i = 0; i < schema_->columns.size(); ++i) {
    if (!schema_->columns[i].is_computed()) positions_[schema_->columns[i].name] = i;
  }
}

Result<Row> RecordRows::ToRow(const Record& record) {
  Row row(schema_->columns.size());
  for (const Field& field : record.fields) {
    const auto position = positions_.find(field.name);
    if (position == positions_.end()) {
      ++undeclared_[field.name];
      continue;
    }
    given_[position->second] = true;
    if (!field.text) continue;
    const Column& column = schema_->columns[position->second];
    // Nothing is written where a number has no value.
    if (field.text->empty() && column.type != Type::kText) continue;
    auto value = Value::Parse(column.type, *field.text);
    if (!value.ok()) return value.status().WithContext("field \"" + field.name + "\"");
    if (column.type == Type::kText) NoteText(record, field);
    row[position->second] = *std::move(value);
  }
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (row[i].is_null() && !schema_->columns[i].nullable) {
      return InvalidArgument("field \"" + schema_->columns[i].name +
                             "\" is missing; every row needs it");
    }
  }
  return row;
}

// Text of another encoding is stored as it is, so that an exported table comes back.
void RecordRows::NoteText(const Record& record, const Field& field) {
  const size_t at = FindInvalidUtf8(*field.text);
  if (at == std::string_view::npos || ++not_utf8_ > 1) return;
  not_utf8_at_ = fmt::format("line {}, field \"{}\", byte {}", record.line, field.name, at + 1);
}

std::string RecordRows::Notes(bool has_put) const {
  std::string out;
  if (!undeclared_.empty()) {
    out += "fields left out, since the table has no such columns:";
    for (const auto& [name, count] : undeclared_) {
      out += " " + name + " (" + std::to_string(count) + ")";
    }
    out += "\n";
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < given_.size() && has_put; ++i) {
    const bool computed = schema_->columns[i].is_computed();
    if (!given_[i] && !computed) missing.push_back(schema_->columns[i].name);
  }
  if (!missing.empty()) {
    out += "columns that the file does not have, NULL in the rows put: " +
           fmt::format("{}", fmt::join(missing, " ")) + "\n";
  }
  if (not_utf8_ > 0) {
    out += fmt::format(
        "texts that are not UTF-8, stored as they are: {} (the first: {}); iconv -t UTF-8 converts "
        "a file\n",
        not_utf8_, not_utf8_at_);
  }
  return out;
}

}  // namespace tamis
