// The parts that all commands of the program share: the options before the command, the chosen
// command, and how a failure is reported to the shell.
//
// A command's file adds its subcommands to the parser, each with a callback that sets
// Invocation::run.
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
  kExitFailure = 1,        // the command failed, or did not find what the user asked for
  kExitUsage = 2,          // the command line is wrong
  kExitInterrupted = 130,  // Ctrl-C
};

struct Invocation {
  std::string store;
  uint64_t filter_memory = uint64_t{16} << 30;
  int servers = 8;
  uint64_t server_filter_memory = uint64_t{1} << 30;
  uint64_t split_bytes = uint64_t{64} << 20;
  bool sync = false;
  bool salvage = false;
  bool read_only = false;
  // The chosen subcommand sets it. Returns the exit code.
  std::function<int()> run;
};

// Prints the status' message on stderr and returns the exit code for the status.
int Report(const Status& status);

void AddSqlCommands(Command app, Invocation* invocation);         // sql, explain
void AddImportCommand(Command app, Invocation* invocation);       // import
void AddRowCommands(Command app, Invocation* invocation);         // get, put, delete, scan
void AddTableCommands(Command app, Invocation* invocation);       // table, index
void AddFilterCommand(Command app, Invocation* invocation);       // filter
void AddLsmCommand(Command app, Invocation* invocation);          // lsm
void AddGuardCommand(Command app, Invocation* invocation);        // guard
void AddClusterCommands(Command app, Invocation* invocation);     // region, server, status, check
void AddDoctorCommand(Command app, Invocation* invocation);       // doctor
void AddServeCommand(Command app, Invocation* invocation);        // serve
void AddTokenCommand(Command app, Invocation* invocation);        // token
void AddHelpCommands(CommandLine& line, Invocation* invocation);  // completion, man

}  // namespace tamis
