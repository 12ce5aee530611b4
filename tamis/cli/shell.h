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
  // After each statement, with `explain`, a line says what its searches did.
  Shell(Connection* connection, Format format, bool explain)
      : connection_(connection), format_(format), explain_(explain) {}

  // SQL, or one command that begins with a dot.
  Status Run(const std::string& text);

  // Reads from the terminal until its end or .quit.
  void Interact();

 private:
  Status RunCommand(const std::string& line);
  Status RunSql(const std::string& sql);

  Connection* connection_;
  Format format_;
  bool explain_;
  bool quit_ = false;
};

}  // namespace tamis
