// SqlProcess: a coordinator in a process of its own (sql_process.py), which can be put to sleep and
// killed as no coordinator of the test's own process can.
//
// Threads: safe; searches one at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tamis/query/engine.h"
#include "tests/cluster/line_process.h"

namespace tamis {

class SqlProcess {
 public:
  // `command`: the program and its arguments. Does not wait until it has opened its store.
  static Result<std::unique_ptr<SqlProcess>> Start(const std::vector<std::string>& command);

  // Errors are those of ErrorOfSql, and kBusy: another search is under way; kUnavailable: the
  // process has ended.
  Result<std::vector<Row>> Search(const TableSchema& schema, const SearchOptions& options);

  void Pause() { process_->Pause(); }
  void Resume() { process_->Resume(); }
  // It ends at once; a search that is under way ends with it.
  void Kill() { process_->Kill(); }

 private:
  explicit SqlProcess(std::unique_ptr<LineProcess> process) : process_(std::move(process)) {}

  const std::unique_ptr<LineProcess> process_;
};

}  // namespace tamis
