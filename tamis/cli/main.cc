// The `tamis` program: reads the command line, opens the store that it names, runs the command.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>

#include "tamis/cli/command.h"

namespace tamis {

int Report(const Status& status) {
  if (status.ok()) return kExitOk;
  std::fflush(stdout);
  std::fprintf(stderr, "tamis: %s\n", status.message().c_str());
  return status.code() == StatusCode::kCancelled ? kExitInterrupted : kExitFailure;
}

}  // namespace tamis

namespace {

// What was printed must have arrived.
int AfterOutput(int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return code;
  std::fprintf(stderr, "tamis: cannot write to standard output; is the disk full?\n");
  return code == tamis::kExitOk ? tamis::kExitFailure : code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `tamis scan t | head` ends quietly
  CLI::App app(
      "Indexed tables in regions, asked in SQL: a query goes only to the servers that can hold "
      "its rows.",
      "tamis");
  tamis::Context context{.store = "./tamis.db"};
  app.set_version_flag("--version", "tamis " TAMIS_VERSION);
  app.add_option("--store", context.store, "The store: a directory, or rocks:DIRECTORY")
      ->envname("TAMIS_STORE")
      ->capture_default_str();
  app.add_option("--servers", context.servers, "Region servers of the embedded cluster")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--split-bytes", context.split_bytes, "Split a region that grows beyond this size")
      ->check([](const std::string& text) {
        return std::string(text.starts_with('-') ? "a size is not negative" : "");
      })
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_flag("--sync", context.sync, "A write reaches the disk before it is acknowledged");
  app.add_flag("--salvage", context.salvage,
               "Open a store whose log is damaged, without what was written after the damage");
  app.require_subcommand(1);
  app.fallthrough();

  tamis::AddSqlCommands(&app, &context);
  tamis::AddImportCommand(&app, &context);
  tamis::AddRowCommands(&app, &context);
  tamis::AddTableCommands(&app, &context);
  tamis::AddClusterCommands(&app, &context);
  tamis::AddFilterCommand(&app, &context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tamis::kExitOk : tamis::kExitUsage;
  }
  try {
    return AfterOutput(context.run());
  } catch (const std::exception& error) {
    return tamis::Report(
        tamis::Internal(std::string("an error that was not foreseen: ") + error.what()));
  }
}
