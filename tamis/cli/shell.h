// Shell: runs SQL and the commands that begin with a dot; on a terminal with history and
// completion.
#pragma once

#include <string>
#include <vector>

#include "tamis/cli/connection.h"
#include "tamis/cli/printer.h"

namespace tamis {

class Shell {
 public:
  struct Options {
    Format format = Format::kTable;
    bool explain = false;  // after each statement, a line says what its searches did
    bool echo = false;     // each statement is printed before it is run
  };

  Shell(Connection* connection, const Options& options)
      : connection_(connection), options_(options) {}

  // SQL, or one command that begins with a dot.
  Status Run(const std::string& text);

  // Reads from the terminal until its end or .quit.
  void Interact();

 private:
  Status RunCommand(const std::string& line);
  Status RunSql(const std::string& sql);
  void PrintTotal() const;
  // For completion.
  std::vector<std::string> Tables() const;
  std::vector<std::string> Servers() const;
  std::vector<std::string> SqlWords() const;
  // The words that can follow `before`, the words of a command so far.
  std::vector<std::string> CommandWords(const std::string& before) const;

  Connection* connection_;
  Options options_;
  Explain total_;  // sums of all searches so far, while explaining
  uint64_t searches_ = 0;
  bool quit_ = false;
};

}  // namespace tamis
