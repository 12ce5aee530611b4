// ChildProcess: a program that runs beside this one, whose output and exit status are read.
//
// The output of a program that fails midway ends like that of one that succeeds: only the exit
// status (Wait) tells whether it was complete.
//
// Threads: exclusive access.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

class ChildProcess {
 public:
  // The program is found in PATH. It shares standard error; its standard input is empty.
  static Result<ChildProcess> Start(const std::vector<std::string>& arguments);
  // Runs a line of bash. Wait fails when any part of a pipe does.
  static Result<ChildProcess> StartShell(const std::string& line);
  // Ends the program, unless Wait was called.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  int output() const { return output_; }  // a file descriptor, owned here
  // Closes the output and waits for the end; not ok unless it ended with 0.
  Status Wait();

 private:
  ChildProcess(std::string name, pid_t pid, int output)
      : name_(std::move(name)), pid_(pid), output_(output) {}

  std::string name_;
  pid_t pid_;  // 0 = it was waited for
  int output_;
};

// The whole output of a program.
Result<std::string> OutputOf(const std::vector<std::string>& arguments);

}  // namespace tamis
