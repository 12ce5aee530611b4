// The `tamis` program: reads the command line, opens the store that it names, runs the command.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "tamis/base/exception_status.h"
#include "tamis/cli/command.h"
#include "tamis/store/store_kind.h"

namespace {

// A standard stream that is closed would be the next file that is opened, such as one of the
// store's, and output would be written into that. Reading and writing these fails.
void KeepStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest number that is free is this stream's.
    (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // NOLINT: variadic
  }
}

// Output that did not arrive is a failure.
int AfterOutput(int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return code;
  std::fprintf(stderr, "tamis: cannot write to standard output; is the disk full?\n");
  return code == tamis::kExitOk ? tamis::kExitFailure : code;
}

}  // namespace

int main(int argc, char** argv) {
  KeepStandardStreams();
  std::signal(SIGPIPE, SIG_DFL);  // `tamis scan t | head` ends quietly
  tamis::CommandLine line(
      "tamis",
      "Indexed tables in regions, asked in SQL: a query goes only to the servers that can hold "
      "its rows.",
      "tamis " TAMIS_VERSION);
  tamis::Invocation invocation{.store = "./tamis.db"};
  line.AddOption("--store", invocation.store,
                 "The store: a directory, or " + tamis::StoreForms(", or "))
      .FromEnvironment("TAMIS_STORE")
      .ShowDefault();
  line.AddConfigFile("--config",
                     "A file with options, in sections by command, as /etc/tamis/server.conf; "
                     "options of the command line override it");
  line.AddOption(
          "--filter-memory", invocation.filter_memory,
          "Memory for copies of the servers' filters; where it is short, they keep fewer bits "
          "and more regions are searched")
      .AsSizeBytes()
      .ShowDefault();
  line.AddOption("--servers", invocation.servers, "Region servers of the embedded cluster")
      .InRange(1, 1000)
      .ShowDefault();
  line.AddOption("--server-filter-memory", invocation.server_filter_memory,
                 "Memory for the filters of one region server of the embedded cluster; beyond it "
                 "removed values stay in the filters until these are counted again")
      .AsSizeBytes()
      .ShowDefault();
  line.AddOption("--split-bytes", invocation.split_bytes,
                 "Split a region that grows beyond this size")
      .AsSizeBytes()
      .ShowDefault();
  line.AddFlag("--sync", invocation.sync, "A write reaches the disk before it is acknowledged");
  line.AddFlag("--read-only", invocation.read_only,
               "Open the embedded store without changing anything in its directory, as "
               "rocks:DIRECTORY?mode=ro; several processes may do so at one time");
  line.AddFlag("--salvage", invocation.salvage,
               "Open a store whose log is damaged; the writes after the damage are lost");

  tamis::AddSqlCommands(line, &invocation);
  tamis::AddImportCommand(line, &invocation);
  tamis::AddRowCommands(line, &invocation);
  tamis::AddTableCommands(line, &invocation);
  tamis::AddClusterCommands(line, &invocation);
  tamis::AddDoctorCommand(line, &invocation);
  tamis::AddServeCommand(line, &invocation);
  tamis::AddTokenCommand(line, &invocation);
  tamis::AddFilterCommand(line, &invocation);
  tamis::AddLsmCommand(line, &invocation);
  tamis::AddGuardCommand(line, &invocation);
  tamis::AddHelpCommands(line, &invocation);

  int exit_code = tamis::kExitOk;
  if (!line.Parse(argc, argv, tamis::kExitUsage, &exit_code)) return AfterOutput(exit_code);
  try {
    return AfterOutput(invocation.run());
  } catch (...) {
    return tamis::Report(tamis::StatusOfException());
  }
}
