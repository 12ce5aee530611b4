// ChildProcess: a program whose output is read here and whose end counts.
//
// A program that fails midway has given half of its output and then its end of file: only the exit
// status tells it from the whole.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

class ChildProcess {
 public:
  // Found in PATH. Standard error is shared, standard input is empty.
  static Result<ChildProcess> Start(const std::vector<std::string>& arguments);
  // A line for the shell; it fails when any part of a pipe does.
  static Result<ChildProcess> StartShell(const std::string& line);
  // Ends it when nobody waited for it.
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
