#include "tamis/cli/filter_demo.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "tamis/cli/line_writer.h"
#include "tamis/filter/filter_file.h"
#include "tamis/papers/overflow.h"
#include "tamis/papers/published.h"
#include "tamis/papers/sections.h"
#include "tamis/papers/times.h"

namespace tamis {
namespace {

constexpr int kTrouble = 2;  // as the other commands of `filter`

struct Arguments {
  uint64_t seed = 1;
  std::string output;  // "" = for a terminal, "-" = the page to the standard output
};

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
  if (arguments.output == "-") return WriteOutput(Markdown(PublishedFigures(arguments.seed)));
  if (!arguments.output.empty()) return WritePages(arguments);
  for (const Section& section : PublishedFigures(arguments.seed).sections) {
    TAMIS_RETURN_IF_ERROR(WriteOutput(ForTerminal(section) + "\n"));
  }
  return WriteOutput(PublishedTimes(arguments.seed));
}

Status DemoPenetration(const Arguments& arguments) {
  return WriteOutput(ForTerminal(Penetration(arguments.seed)));
}

Status DemoOverflow(const Arguments& arguments) {
  return WriteOutput(ForTerminal(Overflow(arguments.seed, CountCounters(arguments.seed))));
}

}  // namespace

void AddFilterDemo(Command filter, Context* context) {
  Command demo = filter.AddCommand(
      "demo", "Published figures about filters: as printed, by formula, measured here");
  demo.RequireCommand();
  auto arguments = std::make_shared<Arguments>();
  Arguments* a = arguments.get();
  const auto add = [&](const char* name, const char* description, auto command) {
    Command sub = demo.AddCommand(name, description);
    sub.AddOption("--seed", a->seed, "Of the keys").ShowDefault();
    sub.OnParsed([=] {
      context->run = [arguments, command] {
        const Status status = command(*arguments);
        if (status.ok()) return 0;
        Report(status);
        return kTrouble;
      };
    });
    return sub;
  };
  add("penetration", "A store that is asked for rows that do not exist, with and without a filter",
      DemoPenetration);
  add("overflow", "How often counters overflow, and filters of several layers", DemoOverflow);
  add("tables", "All of them, and the times that were quoted", Tables)
      .AddOption("-o,--output", a->output,
                 "A directory for the page PAPERS.md and its plots; -: the page, to the standard "
                 "output");
}

}  // namespace tamis
