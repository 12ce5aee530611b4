// PlainClient: HBase's own client in a process of its own (PlainClient.java), which writes and
// reads cells of a table and knows nothing of indexes.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tamis/table/schema.h"
#include "tests/cluster/answer.h"
#include "tests/cluster/line_process.h"

namespace tamis {

class PlainClient {
 public:
  // `command`: the program and its arguments. Waits until it is ready.
  static Result<std::unique_ptr<PlainClient>> Start(const std::vector<std::string>& command);

  // Cells of the row's values; those of columns that are NULL stay as they are. kUnavailable:
  // nothing was done; kDeadlineExceeded: the write may stand; kInternal: it must not.
  Status Put(const TableSchema& schema, const Row& row);
  // All cells of the row.
  Status Delete(const TableSchema& schema, const Row& row);
  // kUnavailable and kDeadlineExceeded: no server answered.
  Result<RowState> Get(const TableSchema& schema, const Row& key);
  // How long each later Get may look for a server that answers. At first 15 s.
  Status SetReadTimeout(std::chrono::seconds timeout);

 private:
  explicit PlainClient(std::unique_ptr<LineProcess> process) : process_(std::move(process)) {}
  Status Write(const std::string& order);
  // Without failures.
  Result<std::string> Ask(const std::string& order);

  const std::unique_ptr<LineProcess> process_;
};

}  // namespace tamis
