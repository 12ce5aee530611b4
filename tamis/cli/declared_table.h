// DeclaredTable: a table as the options of an import declare it: its key, some of its columns, its
// indexes. Names are in lower_snake, as the fields of the records are: "Installed-Size" is
// installed_size.
//
// Threads: const after construction.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cli/table_options.h"
#include "tamis/import/record.h"
#include "tamis/table/schema.h"

namespace tamis {

class DeclaredTable {
 public:
  static Result<DeclaredTable> Parse(std::string table, const TableOptions& options);

  // The definition of a new table, with the columns of the header, of the first records, and those
  // that are declared. An error for a declared column that the header, or all of the records where
  // these are all, lack.
  Result<TableSchema> SchemaFor(const std::vector<std::string>& header,
                                const std::deque<Record>& first, bool all_read) const;
  // An error where a present table has another definition. Only what was declared must agree:
  // another file may have fewer columns.
  Status CheckAgrees(const TableSchema& existing) const;

 private:
  DeclaredTable(std::string table, const TableOptions& options)
      : table_(std::move(table)), options_(options) {}

  struct Index {
    std::vector<std::string> columns;
    std::string options;  // with a space before them
  };

  Status CheckFieldsExist(const std::vector<std::string>& fields) const;
  std::vector<Index> IndexesOf(const std::function<bool(const std::string&)>& is_column) const;

  std::string table_;
  TableOptions options_;
  std::vector<KeyOption> key_;
  std::vector<ColumnOption> columns_;
};

}  // namespace tamis
