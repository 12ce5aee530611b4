// PipedStatements: splits a stream into statements and dot commands, for `tamis sql`.
//
// Comments before a dot command are a statement of their own.
#pragma once

#include <cstdint>
#include <deque>
#include <istream>
#include <optional>
#include <string>

namespace tamis {

class PipedStatements {
 public:
  struct Statement {
    std::string text;
    uint64_t line = 0;  // its last line
  };

  explicit PipedStatements(std::istream* in) : in_(in) {}

  // Returns a statement as soon as it is complete; nullopt at the end.
  std::optional<Statement> Next();

  // Reads up to the first statement that makes a table; false if there is none. Next() returns the
  // statements that were read.
  bool FindTable();

 private:
  std::optional<Statement> Read();

  std::istream* const in_;
  uint64_t line_ = 0;
  std::optional<std::string> pending_;  // a command that was read behind comments
  std::deque<Statement> ahead_;
};

}  // namespace tamis
