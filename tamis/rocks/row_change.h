// RowChange: a row that the mutations of one request touch: as it was, and as it is to be.
//
// Threads: as a value.
#pragma once

#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

struct RowChange {
  std::string key;
  std::optional<Row> before;
  std::optional<Row> after;
  std::optional<std::string> stored;  // the bytes: as read, later as they are to be written
  bool there = false;                 // the store has a row under the key
  bool touched = false;               // a mutation that was not refused has changed the row

  // Changes the row as the mutation says; mutations of one request see those before them. An error
  // is the answer to the mutation, and changes nothing.
  Status Apply(const TableSchema& schema, const pb::Mutation& mutation);
};

}  // namespace tamis
