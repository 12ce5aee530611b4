// RecordRows: rows of a table made of records, and what was noticed on the way: fields that have no
// column, columns that no record had a field for, texts that are not UTF-8.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/import/record.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class RecordRows {
 public:
  explicit RecordRows(SchemaPtr schema);

  // An error names the field that has no value of its column, or is missing.
  Result<Row> ToRow(const Record& record);
  // Lines for people; empty where nothing was noticed. Columns that no record had a field for are
  // told only where rows were put.
  std::string Notes(bool has_put) const;

 private:
  void NoteText(const Record& record, const Field& field);

  const SchemaPtr schema_;
  std::map<std::string, uint32_t> positions_;   // positions of the columns, by name
  std::vector<bool> given_;                     // the columns that a record had a field for
  std::map<std::string, uint64_t> undeclared_;  // fields left out, with their numbers
  uint64_t not_utf8_ = 0;                       // texts
  std::string not_utf8_at_;                     // the first of them
};

}  // namespace tamis
