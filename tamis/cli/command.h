// What the commands of the program share: the options before the command, the chosen command, and
// the way a failure reaches the shell.
//
// A command's file adds its subcommands to the parser, each with a callback that sets Context::run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/cli/command_line.h"

namespace tamis {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,        // the world did not let it, or what was asked for is not there
  kExitUsage = 2,          // the command line is wrong
  kExitInterrupted = 130,  // Ctrl-C
};

struct Context {
  std::string store;
  int servers = 8;
  uint64_t split_bytes = uint64_t{64} << 20;
  bool sync = false;
  bool salvage = false;
  // Set by the subcommand that was named; gives the exit code.
  std::function<int()> run;
};

// Prints the message on stderr; the exit code that goes with it.
int Report(const Status& status);

void AddSqlCommands(Command app, Context* context);         // sql, explain
void AddImportCommand(Command app, Context* context);       // import
void AddRowCommands(Command app, Context* context);         // get, put, delete, scan
void AddTableCommands(Command app, Context* context);       // table, index
void AddFilterCommand(Command app, Context* context);       // filter
void AddLsmCommand(Command app, Context* context);          // lsm
void AddGuardCommand(Command app, Context* context);        // guard
void AddClusterCommands(Command app, Context* context);     // region, server, status, check
void AddHelpCommands(CommandLine& line, Context* context);  // completion, man

}  // namespace tamis
