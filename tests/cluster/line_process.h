// LineProcess: a process of its own that answers a line for each line, and can be put to sleep and
// killed.
//
// Threads: safe; lines one at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

class LineProcess {
 public:
  // `command`: the program and its arguments. Does not wait for anything that it does.
  static Result<std::unique_ptr<LineProcess>> Start(const std::vector<std::string>& command);
  // Kills it.
  ~LineProcess();

  // kBusy: another line is under way; kUnavailable: the process has ended.
  Result<std::string> Ask(const std::string& line);
  // A line that it says unasked.
  Result<std::string> Hear();

  void Pause();
  void Resume();
  // It ends at once; a line that is under way ends with it.
  void Kill();

 private:
  LineProcess(pid_t process, int requests, int answers)
      : process_(process), requests_(requests), answers_(answers) {}
  Result<std::string> Converse(const std::string& said);
  bool Send(const std::string& text);
  bool Receive(std::string* line);

  const pid_t process_;
  const int requests_;
  const int answers_;
  std::mutex speaking_;
  std::string received_;  // behind the last line
};

}  // namespace tamis
