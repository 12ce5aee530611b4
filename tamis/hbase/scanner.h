// The rows of a table between two keys, in order, over all its regions.
//
// Rows come whole, each once. A scanner on a server is a loan: it ends when the region moves,
// splits, or when nobody asks for too long; then a new one begins behind the last row that was
// given out. So a row is what it was at one moment, a scan is not.
//
// Filters that count (Page) count for each region anew.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/connection.h"
#include "tamis/hbase/operations.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/retry_pauses.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/task.h"

namespace tamis::hbase {

class Session;

class Scanner {
 public:
  Scanner(Session& session, std::string table, Scan scan);
  ~Scanner();
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;

  // The next rows; none at the end. After an error it may be called again.
  Task<Result<std::vector<Row>>> Next(Deadline deadline);
  // Tells the server that no more is wanted. Without it, it learns that from the lease.
  void Close();

  uint64_t reopened() const { return reopened_; }

 private:
  Task<Result<RegionPtr>> Locate(Deadline deadline);
  Call MakeCall(Deadline deadline) const;
  // Takes the rows of an answer; where it ends is decided here.
  Status Take(const Reply& reply, std::vector<Row>* rows);
  void Finish(Row row, std::vector<Row>* rows);
  void FinishParts(std::vector<Row>* rows);
  void LeaveRegion();
  void Reopen();

  Session& session_;
  const std::string table_;
  Scan scan_;  // its start moves with the rows
  RegionPtr region_;
  bool open_ = false;
  uint64_t scanner_id_ = 0;
  uint64_t next_call_ = 0;
  std::vector<Row> parts_;  // of a row that has not all come
  size_t parts_bytes_ = 0;
  bool done_ = false;
  uint64_t rows_left_;  // of a limit
  Backoff backoff_ = kRetryPauses;
  int unknown_ = 0;
  uint64_t reopened_ = 0;
};

}  // namespace tamis::hbase
