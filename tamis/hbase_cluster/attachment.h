// Attachment: what must hold of a table that HBase has already before Tamis keeps its indexes, and
// while it does. Pure functions; whatever is in the way is a sentence that says what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/table_schema.h"
#include "tamis/table/schema.h"

namespace tamis {

// Settings in the description of an indexed table with which rows would change without their
// indexes. The master's guard refuses the same.
std::vector<std::string> SettingsAgainst(const hbase::TableDescription& table,
                                         const TableSchema& schema);

// That, and what attaching would overwrite, or does not find.
std::vector<std::string> ObstaclesToAttaching(const hbase::TableDescription& table,
                                              const TableSchema& schema);

// A table that was attached once may be attached again, and a log that is replayed late may bring
// back entries and markers of that time into the new family. So its indexes have numbers that were
// never used: they go on from `drawn`.
TableSchema WithIndexesFrom(TableSchema schema, uint32_t drawn);

// Some rows of the table, read by the schema: a key or a cell that never fits the schema shows that
// its declaration is wrong.
class RowSample {
 public:
  explicit RowSample(const TableSchema& schema);  // which outlives it

  void Add(const hbase::Row& row);
  std::vector<std::string> Faults() const;

 private:
  struct Cells {
    uint64_t decoded = 0;
    std::vector<std::string> undecoded;
  };

  const TableSchema& schema_;
  uint64_t keys_read_ = 0;
  std::vector<std::string> keys_unread_;
  std::vector<Cells> cells_;  // by column
};

// "a; b; c"
std::string JoinSentences(const std::vector<std::string>& sentences);

}  // namespace tamis
