#include "tamis/cli/shell.h"

#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "tamis/base/terminal_text.h"
#include "tamis/base/utf8.h"
#include "tamis/cli/interrupt.h"
#include "tamis/cli/line_editor.h"
#include "tamis/cli/table_statements.h"
#include "tamis/sql/table_functions.h"

namespace tamis {
namespace {

constexpr const char* kHelp =
    ".help                 this\n"
    ".tables               the tables\n"
    ".schema [TABLE]       their definitions\n"
    ".format FORMAT        table, csv, json or line\n"
    ".explain on|off       after each statement, what its searches did\n"
    ".total                what all searches since the start did, with .explain on\n"
    ".servers              the region servers\n"
    ".kill SERVER          end a server as a crash would; others take its regions\n"
    ".pause SERVER         stop a server's threads, as if the machine hung\n"
    ".resume SERVER        let a paused server go on, start a killed one\n"
    ".quit                 leave (Ctrl-D does too)\n"
    "Ctrl-C stops a statement that runs, and drops one that is being typed.\n"
    "Everything else is SQL, ended by a semicolon.\n";

// Beside the keywords of SQL.
constexpr const char* kWords[] = {"count",         "sum",          "avg",           "min",
                                  "max",           "tamis",        "tamis_explain", "tamis_regions",
                                  "tamis_indexes", "tamis_servers"};

using Names = std::vector<std::string>;

// A command that begins with a dot; what its argument is, for completion.
struct DotCommand {
  const char* name;
  enum class Argument { kNone, kTable, kServer, kFormat, kSwitch } argument = Argument::kNone;
};
constexpr DotCommand kCommands[] = {{".help"},
                                    {".tables"},
                                    {".schema", DotCommand::Argument::kTable},
                                    {".format", DotCommand::Argument::kFormat},
                                    {".explain", DotCommand::Argument::kSwitch},
                                    {".total"},
                                    {".servers"},
                                    {".kill", DotCommand::Argument::kServer},
                                    {".pause", DotCommand::Argument::kServer},
                                    {".resume", DotCommand::Argument::kServer},
                                    {".quit"},
                                    {".exit"}};

Names BeginningWith(std::string_view word, const Names& names) {
  Names found;
  std::ranges::copy_if(names, std::back_inserter(found), [&](const std::string& name) {
    return strncasecmp(name.c_str(), word.data(), word.size()) == 0;
  });
  return found;
}

// SQLite would end a statement at a zero byte, and store other encodings as they come.
Status CheckText(const std::string& statement) {
  const size_t invalid = FindInvalidUtf8(statement);
  if (invalid != std::string::npos) {
    return InvalidArgument("cannot run the statement: its byte " + std::to_string(invalid + 1) +
                           " is not UTF-8; write it in UTF-8, and other bytes as x'ff'");
  }
  const size_t zero = statement.find('\0');
  if (zero == std::string::npos) return Status::Ok();
  return InvalidArgument("cannot run the statement: its byte " + std::to_string(zero + 1) +
                         " is zero; it must be UTF-8 (not UTF-16), and zero bytes are char(0)");
}

Status BytesReplaced() {
  return InvalidArgument(
      "cannot run the statement: a U+FFFD in it stands for bytes that are not UTF-8, or are zero; "
      "write it in UTF-8, other bytes as x'ff', and zero bytes as char(0)");
}

// A zero byte does not end the statement.
bool IsComplete(std::string statement) {
  std::ranges::replace(statement, '\0', ' ');
  return sqlite3_complete(statement.c_str()) != 0;
}

std::string HistoryFile() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? std::string() : std::string(home) + "/.tamis_history";
}

}  // namespace

Status Shell::Run(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return Status::Ok();
  TAMIS_RETURN_IF_ERROR(CheckText(text));
  if (options_.echo) {
    const std::string shown = text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
    std::printf("\n%s\n", TerminalText(shown).c_str());
  }
  if (!connection_->CheckStore().ok() && TableStatements::MakesTable(text)) {
    TAMIS_RETURN_IF_ERROR(connection_->MakeStore());
  }
  return text[begin] == '.' ? RunCommand(text.substr(begin)) : RunSql(text);
}

Status Shell::RunSql(const std::string& sql) {
  Printer printer(options_.format, stdout);
  std::vector<Explain> searches;
  TAMIS_RETURN_IF_ERROR(
      connection_->Run(sql, printer.Sink(), options_.explain ? &searches : nullptr));
  if (!searches.empty()) {
    const Explain sum = SumOf(searches);
    std::printf("-- %s\n", TerminalText(sum.ToLine()).c_str());
    total_.Add(sum);
    searches_ += searches.size();
  }
  std::fflush(stdout);
  return Status::Ok();
}

Status Shell::RunCommand(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  std::string argument;
  words >> command >> argument;
  using Order = void (ClusterAdmin::*)(const std::string& server, DoneCallback done);
  const auto order = [&](Capability capability, Order call) -> Status {
    TAMIS_RETURN_IF_ERROR(connection_->CheckStore());
    if (!connection_->admin().Can(capability)) return CannotDo(capability);
    return connection_->session()->Do(
        [&](ClusterAdmin& admin, auto done) { (admin.*call)(argument, std::move(done)); });
  };
  if (command == ".help") {
    std::fputs(kHelp, stdout);
  } else if (command == ".quit" || command == ".exit") {
    quit_ = true;
  } else if (command == ".format") {
    TAMIS_ASSIGN_OR_RETURN(options_.format, ParseFormat(argument));
  } else if (command == ".explain") {
    if (argument != "on" && argument != "off") return InvalidArgument("write .explain on or off");
    options_.explain = argument == "on";
  } else if (command == ".tables" || command == ".schema") {
    TAMIS_RETURN_IF_ERROR(connection_->CheckStore());
    TAMIS_ASSIGN_OR_RETURN(const auto tables, connection_->session()->Tables());
    for (const TableSchema& table : tables) {
      if (!argument.empty() && table.name != argument) continue;
      const std::string shown = command == ".tables" ? table.name : table.ToString();
      std::printf("%s\n", TerminalText(shown).c_str());
    }
  } else if (command == ".total") {
    PrintTotal();
  } else if (command == ".servers") {
    return RunSql("SELECT * FROM tamis_servers");
  } else if (command == ".kill") {
    return order(Capability::kKillServer, &ClusterAdmin::KillServer);
  } else if (command == ".pause") {
    return order(Capability::kPauseServer, &ClusterAdmin::PauseServer);
  } else if (command == ".resume") {
    return order(Capability::kResumeServer, &ClusterAdmin::ResumeServer);
  } else {
    return InvalidArgument("there is no command " + command + "; .help lists them");
  }
  return Status::Ok();
}

void Shell::PrintTotal() const {
  fmt::print(
      "{} searches, all together: {} of {} servers asked, {} of {} regions asked; {} rows read, {} "
      "returned\n",
      searches_, total_.servers_asked, total_.servers_total, total_.regions_asked,
      total_.regions_total, total_.rows_read, total_.rows_returned);
}

Names Shell::Tables() const {
  if (!connection_->CheckStore().ok()) return {};
  const auto tables = connection_->session()->Tables();
  Names names;
  if (!tables.ok()) return names;
  for (const TableSchema& table : *tables) names.push_back(table.name);
  return names;
}

Names Shell::Servers() const {
  if (!connection_->CheckStore().ok()) return {};
  const auto servers = connection_->session()->Ask<std::vector<ServerInfo>>(
      [](Cluster& cluster, auto done) { cluster.ListServers(std::move(done)); });
  Names names;
  if (!servers.ok()) return names;
  for (const ServerInfo& server : *servers) names.push_back(server.name);
  return names;
}

// Keywords and functions of SQL, tables and their columns.
Names Shell::SqlWords() const {
  std::set<std::string> words(std::begin(kWords), std::end(kWords));
  for (int i = 0; i < sqlite3_keyword_count(); ++i) {
    const char* word = nullptr;
    int size = 0;
    if (sqlite3_keyword_name(i, &word, &size) == SQLITE_OK) words.emplace(word, size);
  }
  if (connection_->CheckStore().ok()) {
    const auto tables = connection_->session()->Tables();
    if (!tables.ok()) return {words.begin(), words.end()};
    for (const TableSchema& table : *tables) {
      words.insert(table.name);
      for (const Column& column : table.columns) {
        if (!column.is_dropped()) words.insert(column.name);
      }
    }
  }
  return {words.begin(), words.end()};
}

Names Shell::CommandWords(const std::string& before) const {
  std::istringstream words(before);
  std::string name;
  words >> name;
  if (name.empty()) {
    Names names;
    for (const DotCommand& command : kCommands) names.emplace_back(command.name);
    return names;
  }
  const auto command = std::ranges::find(kCommands, name, &DotCommand::name);
  if (command == std::end(kCommands) || (words >> name)) return {};  // it has its argument
  switch (command->argument) {
    case DotCommand::Argument::kNone:
      return {};
    case DotCommand::Argument::kTable:
      return Tables();
    case DotCommand::Argument::kServer:
      return Servers();
    case DotCommand::Argument::kFormat:
      return FormatNames();
    case DotCommand::Argument::kSwitch:
      return {"on", "off"};
  }
  return {};
}

void Shell::Interact() {
  const InterruptScope interrupt(&connection_->session()->cancelled);
  const Names sql_words = SqlWords();
  std::string statement;
  bool replaced = false;  // not all of its bytes are in `statement`
  LineEditor editor(
      {.history_file = HistoryFile(),
       .complete = [&](std::string_view line, std::string_view word) {
         const bool command = statement.empty() && (line.empty() ? word : line).starts_with('.');
         return BeginningWith(word, command ? CommandWords(std::string(line)) : sql_words);
       }});
  std::printf("%s: .help for help, a semicolon ends a statement\n",
              connection_->store_name().c_str());
  if (Status status = connection_->CheckStore(); !status.ok()) {
    std::printf("%s\n", TerminalText(status.message()).c_str());
  }
  while (!quit_) {
    const LineEditor::Line line = editor.Read(statement.empty() ? "tamis> " : "  ...> ");
    if (line.kind == LineEditor::Line::Kind::kEnd) break;
    if (line.kind == LineEditor::Line::Kind::kInterrupted) {
      statement.clear();
      replaced = false;
      continue;
    }
    if (statement.empty() && line.text.empty()) continue;
    statement += line.text;
    replaced = replaced || line.replaced;
    const bool command = statement[0] == '.';
    if (!command && !IsComplete(statement)) {
      statement += "\n";
      continue;
    }
    // The history would give the statement back as if it had been typed with U+FFFD.
    if (!replaced) editor.Remember(statement);
    const Status status = replaced ? BytesReplaced() : Run(statement);
    if (!status.ok()) Report(status);
    statement.clear();
    replaced = false;
  }
  if (!statement.empty() && !replaced) editor.Remember(statement);
}

}  // namespace tamis
