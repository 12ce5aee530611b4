// Reads the rows of a table between two keys, in order, across all its regions.
//
// It returns whole rows, each once. A scanner on a server expires when the region moves or splits,
// or when its lease runs out; then a new scanner starts after the last row returned. So each row is
// consistent at one moment, but the scan as a whole is not.
//
// Filters that count rows (Page) start again in each region.
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

  // Returns the next rows; an empty batch is the end. May be called again after an error.
  Task<Result<std::vector<Row>>> Next(Deadline deadline);
  // Closes the scanner on the server. Without this call, the server closes it when its lease
  // expires.
  void Close();

  uint64_t reopened() const { return reopened_; }

 private:
  Task<Result<RegionPtr>> Locate(Deadline deadline);
  Call MakeCall(Deadline deadline) const;
  // Takes the rows of an answer and decides whether the region or the scan has ended.
  Status Take(const Reply& reply, std::vector<Row>* rows);
  void Finish(Row row, std::vector<Row>* rows);
  void FinishParts(std::vector<Row>* rows);
  void LeaveRegion();
  void Reopen();

  Session& session_;
  const std::string table_;
  Scan scan_;  // its start advances with the rows
  RegionPtr region_;
  bool open_ = false;
  uint64_t scanner_id_ = 0;
  uint64_t next_call_ = 0;
  std::vector<Row> parts_;  // the parts received of an incomplete row
  size_t parts_bytes_ = 0;
  bool done_ = false;
  uint64_t rows_left_;  // until the limit
  Backoff backoff_ = kRetryPauses;
  int unknown_ = 0;
  uint64_t reopened_ = 0;
};

}  // namespace tamis::hbase
