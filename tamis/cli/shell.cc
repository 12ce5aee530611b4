#include "tamis/cli/shell.h"

#include <editline/readline.h>
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>

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
    ".quit                 leave (Ctrl-D does too; Ctrl-C stops a statement)\n"
    "Everything else is SQL, ended by a semicolon.\n";

// Beside the keywords of SQL.
constexpr const char* kWords[] = {"count",         "sum",          "avg",           "min",
                                  "max",           "tamis",        "tamis_explain", "tamis_regions",
                                  "tamis_indexes", "tamis_servers"};

// What completion offers, while the user types; libedit asks through a plain function.
std::vector<std::string>* completion_words = nullptr;

char* NextCompletion(const char* prefix, int state) {
  static size_t next;
  if (state == 0) next = 0;
  const size_t size = std::strlen(prefix);
  while (completion_words != nullptr && next < completion_words->size()) {
    const std::string& word = (*completion_words)[next++];
    if (strncasecmp(word.c_str(), prefix, size) == 0) return strdup(word.c_str());
  }
  return nullptr;
}

std::string HistoryFile() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? std::string() : std::string(home) + "/.tamis_history";
}

}  // namespace

Status Shell::Run(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return Status::Ok();
  if (options_.echo) {
    std::printf("\n%s\n", text.substr(begin, text.find_last_not_of(" \n") + 1 - begin).c_str());
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
    std::printf("-- %s\n", sum.ToLine().c_str());
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
    TAMIS_ASSIGN_OR_RETURN(const auto tables, connection_->session()->Ask<std::vector<TableSchema>>(
                                                  [](Cluster& cluster, auto done) {
                                                    cluster.ListTables(std::move(done));
                                                  }));
    for (const TableSchema& table : tables) {
      if (!argument.empty() && table.name != argument) continue;
      std::printf("%s\n", (command == ".tables" ? table.name : table.ToString()).c_str());
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
      "{} searches: {} of {} times a server was asked, {} of {} times a region; {} rows read, {} "
      "returned\n",
      searches_, total_.servers_asked, total_.servers_total, total_.regions_asked,
      total_.regions_total, total_.rows_read, total_.rows_returned);
}

void Shell::Interact() {
  std::set<std::string> words(std::begin(kWords), std::end(kWords));
  for (int i = 0; i < sqlite3_keyword_count(); ++i) {
    const char* word = nullptr;
    int size = 0;
    if (sqlite3_keyword_name(i, &word, &size) == SQLITE_OK) words.emplace(word, size);
  }
  const auto tables = connection_->session()->Ask<std::vector<TableSchema>>(
      [](Cluster& cluster, auto done) { cluster.ListTables(std::move(done)); });
  if (tables.ok()) {
    for (const TableSchema& table : *tables) {
      words.insert(table.name);
      for (const Column& column : table.columns) words.insert(column.name);
    }
  }
  std::vector<std::string> list(words.begin(), words.end());
  completion_words = &list;
  rl_completion_entry_function = reinterpret_cast<decltype(rl_completion_entry_function)>(
      reinterpret_cast<void (*)()>(NextCompletion));
  using_history();
  const std::string history = HistoryFile();
  if (!history.empty()) read_history(history.c_str());

  std::printf("%s: .help for help, a semicolon ends a statement\n",
              connection_->store_name().c_str());
  std::string statement;
  while (!quit_) {
    const std::unique_ptr<char, decltype(&std::free)> line(
        readline(statement.empty() ? "tamis> " : "  ...> "), &std::free);
    if (line == nullptr) break;
    if (statement.empty() && *line == '\0') continue;
    statement += line.get();
    const bool command = statement[0] == '.';
    if (!command && !sqlite3_complete(statement.c_str())) {
      statement += "\n";
      continue;
    }
    add_history(statement.c_str());
    if (Status status = Run(statement); !status.ok()) Report(status);
    statement.clear();
  }
  if (!history.empty()) write_history(history.c_str());
  completion_words = nullptr;
}

}  // namespace tamis
