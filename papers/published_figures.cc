// published_figures: what has been published about filters, computed and measured anew. A tool for
// who works on them; docs/PAPERS.md is written by it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "papers/overflow.h"
#include "papers/published.h"
#include "papers/sections.h"
#include "papers/times.h"
#include "tamis/filter/filter_file.h"

namespace tamis {
namespace {

struct Arguments {
  uint64_t seed = 1;
  std::string output;  // "" = for a terminal, "-" = the page to the standard output
};

Status Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return Status::Ok();
  }
  return Unavailable(fmt::format("cannot write to the standard output: {}", std::strerror(errno)));
}

Status WritePages(const Arguments& arguments) {
  const std::filesystem::path directory = arguments.output;
  std::error_code error;
  std::filesystem::create_directories(directory / "plots", error);
  if (error) {
    return Unavailable(fmt::format("cannot make the directory \"{}\": {}",
                                   (directory / "plots").string(), error.message()));
  }
  for (const PageFile& page : PublishedPages(arguments.seed)) {
    const std::string path = (directory / page.path).string();
    TAMIS_RETURN_IF_ERROR(ReplaceFile(path, page.bytes));
    fmt::print(stderr, "wrote {}\n", path);
  }
  return Status::Ok();
}

Status Tables(const Arguments& arguments) {
  if (arguments.output == "-") return Print(Markdown(PublishedFigures(arguments.seed)));
  if (!arguments.output.empty()) return WritePages(arguments);
  for (const Section& section : PublishedFigures(arguments.seed).sections) {
    TAMIS_RETURN_IF_ERROR(Print(ForTerminal(section) + "\n"));
  }
  return Print(TableOf(MeasurePublishedTimes(arguments.seed)));
}

int Run(int argc, char** argv) {
  CLI::App app("Published figures about filters: as printed, by formula, measured here");
  app.require_subcommand(1);
  Arguments arguments;
  Status status;
  const auto add = [&](const char* name, const char* description, std::function<Status()> print) {
    CLI::App* command = app.add_subcommand(name, description);
    command->add_option("--seed", arguments.seed, "Of the keys")->capture_default_str();
    command->final_callback([&status, print = std::move(print)] { status = print(); });
    return command;
  };
  add("penetration", "A store that is asked for rows that do not exist, with and without a filter",
      [&] { return Print(ForTerminal(Penetration(arguments.seed))); });
  add("overflow", "How often counters overflow, and filters of several layers",
      [&] { return Print(ForTerminal(Overflow(arguments.seed, CountCounters(arguments.seed)))); });
  add("tables", "All of them, and the times that were quoted", [&] { return Tables(arguments); })
      ->add_option("-o,--output", arguments.output,
                   "A directory for the page PAPERS.md and its plots; -: the page, to the standard "
                   "output");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (status.ok()) return 0;
  fmt::print(stderr, "published_figures: {}\n", status.message());
  return 2;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) { return tamis::Run(argc, argv); }
