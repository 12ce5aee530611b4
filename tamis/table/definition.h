// Table definitions as text: the arguments of CREATE VIRTUAL TABLE t USING tamis(...).
//
//   package, version, architecture,              -- text, where no type is named
//   installed_size int64, essential bool not null,
//   key (package, version, architecture),
//   index section (section),
//   index maintainer (maintainer, section) fpr 0.01 expected_values 5000 nulls skip
//   index architecture (architecture) include (installed_size)
//   index installed_size (installed_size) ranges 8   -- cells for each value; without a number 16
//
// A computed column (expression.h), to be named by indexes like another one:
//
//   maintainer_lower = lower(maintainer), index maintainer_lower (maintainer_lower)
//
// A table whose keys and cells another program wrote, or is to read (docs/TABLES.md):
//
//   host text, at timestamp, load double cell 'd:load:float', note text cell 'd:note',
//   key (host 'until=\x00', at phoenix_date),
//   marker 'd:'                                   -- the default; or marker 'none'
#pragma once

#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/schema.h"

namespace tamis {

// One argument a column, key or index, in any order.
Result<TableSchema> ParseDefinition(const std::string& table,
                                    const std::vector<std::string>& parts);

// The one argument of a column that is added to the table: "essential bool",
// "note text cell 'd:note'", "note_lower = lower(note)".
Result<Column> ParseColumnDefinition(const TableSchema& table, const std::string& text);

// Whether the table that is there is what is wanted: the same columns, key and indexes (ids, seeds
// and dropped columns aside). kAlreadyExists, with the difference, when it is not.
Status CheckSameDefinition(const TableSchema& there, const TableSchema& wanted);

}  // namespace tamis
