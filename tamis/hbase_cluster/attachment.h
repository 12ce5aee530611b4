// Attachment: the requirements that an existing HBase table must meet before Tamis indexes it, and
// as long as it does. Pure functions. Each obstacle is reported as a sentence that says what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/table_schema.h"
#include "tamis/table/schema.h"

namespace tamis {

// Settings of the HBase table with which rows could change without their indexes. The master's
// guard refuses the same settings.
std::vector<std::string> SettingsAgainst(const hbase::TableDescription& table,
                                         const TableSchema& schema);

// The faults of SettingsAgainst, and what attaching would overwrite or cannot find.
std::vector<std::string> ObstaclesToAttaching(const hbase::TableDescription& table,
                                              const TableSchema& schema);

// Gives the indexes of a newly attached table unused numbers, starting at `drawn`. The table may
// have been attached before, and a log that is replayed late may bring back entries and markers of
// that time into the new index family; new numbers keep them apart.
TableSchema WithIndexesFrom(TableSchema schema, uint32_t drawn);

// A sample of the table's rows, read by the schema. A key or cell that no sampled row holds in the
// declared form is probably declared wrongly.
class RowSample {
 public:
  explicit RowSample(const TableSchema& schema);  // must outlive the sample

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

// Joins sentences as "a; b; c".
std::string JoinSentences(const std::vector<std::string>& sentences);

}  // namespace tamis
