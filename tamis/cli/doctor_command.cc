// tamis doctor.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tamis/base/terminal_text.h"
#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"

namespace tamis {
namespace {

enum DoctorExit : int { kAllFine = 0, kSomethingToDo = 1, kNotAsked = 2 };

std::string_view NameOf(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kFine:
      return "fine";
    case Finding::Kind::kNote:
      return "note";
    case Finding::Kind::kToDo:
      return "to do";
  }
  return "";
}

std::string Together(const std::vector<std::string>& subjects) {
  if (subjects.size() == 1) return subjects[0];
  return fmt::format("each of {}", fmt::join(subjects, ", "));
}

void PrintJson(const std::string& store, const std::vector<Finding>& findings, bool fine) {
  auto json = nlohmann::ordered_json{{"store", store}, {"fine", fine}};
  auto& list = json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back(
        {{"kind", NameOf(finding.kind)}, {"subjects", finding.subjects}, {"text", finding.text}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int NotAsked(const Status& status) {
  Report(status);
  return kNotAsked;
}

int Doctor(const Invocation& invocation, bool json) {
  auto connection = Connection::Open(invocation, /*create=*/false);
  if (!connection.ok()) return NotAsked(connection.status());
  const auto found =
      (*connection)->session()->Change<std::vector<Finding>>([](ClusterAdmin& admin, auto done) {
        admin.Examine(std::move(done));
      });
  if (!found.ok()) return NotAsked(found.status());
  const bool fine = std::ranges::count(*found, Finding::Kind::kToDo, &Finding::kind) == 0;
  if (json) {
    PrintJson((*connection)->store_name(), *found, fine);
    return fine ? kAllFine : kSomethingToDo;
  }
  // The findings that need work come last, where the reader ends.
  for (const auto kind : {Finding::Kind::kFine, Finding::Kind::kNote, Finding::Kind::kToDo}) {
    for (const Finding& finding : *found) {
      if (finding.kind != kind) continue;
      fmt::print("{:<6} {} {}\n", NameOf(kind), TerminalText(Together(finding.subjects)),
                 TerminalText(finding.text));
    }
  }
  return fine ? kAllFine : kSomethingToDo;
}

}  // namespace

void AddDoctorCommand(Command app, Invocation* invocation) {
  auto json = std::make_shared<bool>(false);
  Command doctor =
      app.AddCommand("doctor",
                     "Examine the HBase of the store, before tables are indexed and later. Exit "
                     "status 0: nothing to do; 1: something to do; 2: it cannot be examined");
  doctor.AddFlag("--json", *json, "Print JSON");
  doctor.OnParsed([invocation, json] {
    invocation->run = [invocation, json] { return Doctor(*invocation, *json); };
  });
}

}  // namespace tamis
