#include "tamis/cluster/check_report.h"

#include <fmt/format.h>

namespace tamis {
namespace {

constexpr size_t kMaxProblems = 20;

}  // namespace

void CheckReport::Note(std::string problem) {
  if (problems.size() < kMaxProblems) problems.push_back(std::move(problem));
}

void CheckReport::Add(const CheckReport& other) {
  for (auto field : {&CheckReport::regions, &CheckReport::rows, &CheckReport::entries,
                     &CheckReport::filter_lookups, &CheckReport::garbage, &CheckReport::incomplete,
                     &CheckReport::missing_entries, &CheckReport::foreign_entries,
                     &CheckReport::missing_in_filter, &CheckReport::undecodable_cells,
                     &CheckReport::unparsed_rows, &CheckReport::damaged_keys}) {
    this->*field += other.*field;
  }
  for (const std::string& problem : other.problems) Note(problem);
}

std::string CheckReport::ToString() const {
  std::string text = fmt::format(
      "compared {} rows in {} regions with {} index entries and {} filter lookups\n"
      "missing entries {}, foreign entries {}, missing in filters {}; garbage entries {} "
      "(harmless), "
      "indexes still being built {}\n",
      rows, regions, entries, filter_lookups, missing_entries, foreign_entries, missing_in_filter,
      garbage, incomplete);
  if (undecodable_cells + unparsed_rows > 0) {
    text += fmt::format(
        "cells that do not decode, and count as NULL {}, rows left out since their keys do not "
        "parse {}\n",
        undecodable_cells, unparsed_rows);
  }
  for (const std::string& problem : problems) text += problem + "\n";
  return text;
}

std::string CheckReport::Summary() const {
  std::string text;
  const auto add = [&](uint64_t count, const char* what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(missing_entries, "index entries are missing");
  add(foreign_entries, "index entries belong to no row");
  add(missing_in_filter, "values are missing in filters");
  add(damaged_keys, "row keys are damaged");
  return text;
}

}  // namespace tamis
