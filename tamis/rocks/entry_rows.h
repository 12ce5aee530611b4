// EntryRows: rows made from the entries of one index, without reading the rows.
//
// An entry holds the values of the index's columns, the row key, and the included columns; it is
// written in one batch with its row, and both are read from one snapshot. So it tells the state of
// the row exactly, unless a value in it was cut; included values never are. The rule is positive:
// every column that the search needs is a column of the index or of the key, or included, and the
// entry decodes exactly; else the row is read.
//
// The jar has the same class, with more to prove (docs/HBASE.md); tests/golden/searches.txt holds
// both to the same choices.
//
// Threads: const. The schema and the index outlive it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tamis/cluster/faults.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class EntryRows {
 public:
  // nullopt: some column of `needed` (by position) is not in the entry.
  static std::optional<EntryRows> For(const TableSchema& schema, const IndexSpec& index,
                                      const std::vector<bool>& needed, const Faults& faults);

  // The columns of the entry; other columns are NULL. nullopt: the entry does not prove them, and
  // the row must be read. `values` are the encoded values of the entry, `included` its value.
  std::optional<Row> Read(std::string_view values, std::string_view row_key,
                          std::string_view included) const;

 private:
  EntryRows(const TableSchema& schema, const IndexSpec& index, const Faults& faults)
      : schema_(&schema), index_(&index), faults_(&faults) {}

  const TableSchema* schema_;
  const IndexSpec* index_;
  const Faults* faults_;
};

}  // namespace tamis
