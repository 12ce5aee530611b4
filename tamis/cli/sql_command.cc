// tamis sql, tamis explain.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tamis/base/terminal_text.h"
#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/input_file.h"
#include "tamis/cli/interrupt.h"
#include "tamis/cli/piped_statements.h"
#include "tamis/cli/printer.h"
#include "tamis/cli/shell.h"
#include "tamis/cli/table_statements.h"
#include "tamis/sql/table_functions.h"

namespace tamis {
namespace {

// --explain shows filters at work, not a store that starts.
constexpr Duration kRoutingPatience = std::chrono::seconds(20);

// Copies of filters that the servers have arrive soon.
constexpr Duration kShortPatience = std::chrono::milliseconds(200);

struct SqlOptions {
  std::vector<std::string> statements;
  std::string format = "table";
  bool explain = false;
  bool echo = false;
  bool create = false;
};

Status RunPiped(Shell* shell, PipedStatements* statements) {
  while (const auto statement = statements->Next()) {
    if (Status status = shell->Run(statement->text); !status.ok()) {
      return status.WithContext("line " + std::to_string(statement->line));
    }
  }
  return Status::Ok();
}

// A store that is not there is made for statements that make a table; others would find nothing in
// it, and its name may be mistyped. The shell makes it when such a statement is typed.
Result<std::unique_ptr<Connection>> OpenFor(const Invocation& invocation, const SqlOptions& options,
                                            bool interactive, PipedStatements* piped) {
  auto connection = Connection::Open(invocation, options.create);
  if (connection.ok() || connection.status().code() != StatusCode::kNotFound) return connection;
  if (interactive && !invocation.store.starts_with("hbase:")) {
    return Connection::OpenWithoutStore(invocation);
  }
  const bool makes_table =
      !interactive && (options.statements.empty()
                           ? piped->FindTable()
                           : std::ranges::any_of(options.statements, TableStatements::MakesTable));
  if (!makes_table) return connection;
  return Connection::Open(invocation, /*create=*/true);
}

void AwaitFilters(Connection* connection, bool explain) {
  if (explain) {
    connection->WaitUntilRouted(kRoutingPatience);
    return;
  }
  const auto status = connection->session()->Change<ClusterStatus>(
      [](ClusterAdmin& admin, auto done) { admin.GetStatus(std::move(done)); });
  if (status.ok() && status->pending_work == 0) connection->WaitUntilRouted(kShortPatience);
}

int RunSql(const Invocation& invocation, const SqlOptions& options) {
  const auto format = ParseFormat(options.format);
  if (!format.ok()) return Report(format.status());
  const bool interactive = options.statements.empty() && isatty(STDIN_FILENO) != 0;
  if (options.statements.empty()) {
    if (const auto input = InputFile::Open("-"); !input.ok()) return Report(input.status());
  }
  PipedStatements piped(&std::cin);
  auto connection = OpenFor(invocation, options, interactive, &piped);
  if (!connection.ok()) return Report(connection.status());
  if ((*connection)->CheckStore().ok()) AwaitFilters(connection->get(), options.explain);
  Shell shell(connection->get(),
              {.format = *format, .explain = options.explain, .echo = options.echo});
  if (interactive) {
    shell.Interact();
    return Report((*connection)->CheckCommitted());
  }
  const InterruptScope interrupt(&(*connection)->session()->cancelled);
  if (!options.statements.empty()) {
    for (const std::string& statement : options.statements) {
      if (Status status = shell.Run(statement); !status.ok()) return Report(status);
    }
  } else if (Status status = RunPiped(&shell, &piped); !status.ok()) {
    return Report(status);
  }
  return Report((*connection)->CheckCommitted());
}

int RunExplain(const Invocation& invocation, const std::string& statement, bool json) {
  auto connection = Connection::Open(invocation, false);
  if (!connection.ok()) return Report(connection.status());
  (*connection)->WaitUntilRouted(kRoutingPatience);
  const char* text = statement.c_str();
  const std::string run = (*connection)->RewriteFirst(&text).value_or(statement);
  const auto searches = ExplainSql((*connection)->db(), (*connection)->session(), run);
  if (!searches.ok()) return Report(searches.status());
  const Explain sum = SumOf(*searches);
  if (json) {
    auto object = nlohmann::ordered_json::parse(sum.ToJson());
    object["searches"] = nlohmann::ordered_json::array();
    for (const Explain& search : *searches) {
      object["searches"].push_back(nlohmann::ordered_json::parse(search.ToJson()));
    }
    std::cout << object.dump(2) << "\n";
    return kExitOk;
  }
  if (searches->empty()) {
    std::cout << "the statement searches no table of the store\n";
    return kExitOk;
  }
  std::cout << TerminalText(sum.ToText());
  constexpr size_t kShown = 20;
  if (searches->size() > 1) {
    std::cout << "\n" << searches->size() << " searches:\n";
    for (size_t i = 0; i < std::min(kShown, searches->size()); ++i) {
      std::cout << "  " << TerminalText((*searches)[i].ToLine()) << "\n";
    }
    if (searches->size() > kShown) {
      std::cout << "  ... and " << searches->size() - kShown << " more (--json shows all)\n";
    }
  }
  return kExitOk;
}

}  // namespace

void AddSqlCommands(Command app, Invocation* invocation) {
  auto options = std::make_shared<SqlOptions>();
  Command sql = app.AddCommand(
      "sql", "Run SQL: the statements given, those of a pipe, or a shell when on a terminal");
  sql.AddOption("STATEMENT", options->statements, "SQL; each may hold several statements");
  AddFormatOption(sql, options->format);
  sql.AddFlag("--explain", options->explain,
              "After each statement, say in a line what its searches did");
  sql.AddFlag("--echo", options->echo, "Print each statement before it is run");
  sql.AddFlag("--create", options->create,
              "Make the store if it is not there; a statement that makes a table does so, too");
  sql.OnParsed([=] { invocation->run = [=] { return RunSql(*invocation, *options); }; });

  auto statement = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  Command explain = app.AddCommand(
      "explain",
      "Run a statement and say which servers were asked, which were not, and why. UPDATE and "
      "DELETE run only their search");
  explain.AddOption("STATEMENT", *statement, "One SQL statement").Required();
  explain.AddFlag("--json", *json, "Print JSON");
  explain.OnParsed(
      [=] { invocation->run = [=] { return RunExplain(*invocation, *statement, *json); }; });
}

}  // namespace tamis
