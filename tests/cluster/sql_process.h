// SqlProcess: a coordinator in a process of its own (sql_process.py), which can be put to sleep and
// killed as no coordinator of the test's own process can.
//
// Threads: safe; searches one at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/query/engine.h"

namespace tamis {

class SqlProcess {
 public:
  // `command`: the program and its arguments. Does not wait until it has opened its store.
  static Result<std::unique_ptr<SqlProcess>> Start(const std::vector<std::string>& command);
  // Kills it.
  ~SqlProcess();

  // Errors are those of ErrorOfSql, and kBusy: another search is under way; kUnavailable: the
  // process has ended.
  Result<std::vector<Row>> Search(const TableSchema& schema, const SearchOptions& options);

  void Pause();
  void Resume();
  // It ends at once; a search that is under way ends with it.
  void Kill();

 private:
  SqlProcess(pid_t process, int requests, int answers)
      : process_(process), requests_(requests), answers_(answers) {}
  bool Send(const std::string& line);
  bool Receive(std::string* line);

  const pid_t process_;
  const int requests_;
  const int answers_;
  std::mutex searching_;
  std::string received_;  // behind the last line
};

}  // namespace tamis
