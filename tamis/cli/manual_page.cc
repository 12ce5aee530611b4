#include "tamis/cli/manual_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace tamis {
namespace {

// Text of a page: no line of it is a request, and - is a minus that can be copied.
std::string Escaped(const std::string& text) {
  std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\n') {
      escaped += ' ';
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string OptionText(const OptionDescription& option, bool is_argument = false) {
  std::string names;
  for (const std::string& name : option.names) {
    if (!names.empty()) names += ", ";
    names += (is_argument ? "\\fI" : "\\fB") + Escaped(name) + "\\fR";
  }
  if (!is_argument && !option.value.empty()) names += " \\fI" + Escaped(option.value) + "\\fR";
  std::string text = ".TP\n" + names + "\n" + Escaped(option.help);
  for (size_t i = 0; i < option.words.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + Escaped(option.words[i]);
  }
  if (!option.default_value.empty()) text += " (" + Escaped(option.default_value) + ")";
  return text + "\n";
}

std::string Synopsis(const std::string& path, const CommandDescription& command) {
  std::string synopsis = "\\fB" + Escaped(path) + "\\fR";
  if (!command.options.empty()) synopsis += " [\\fIOPTION\\fR...]";
  for (const auto& argument : command.arguments) {
    std::string name = "\\fI" + Escaped(argument.names.front()) + "\\fR";
    if (argument.repeated) name += "...";
    synopsis += argument.required ? " " + name : " [" + name + "]";
  }
  return synopsis;
}

bool IsHelp(const OptionDescription& option) {
  return std::ranges::find(option.names, "--help") != option.names.end();
}

void AddCommand(const std::string& path, const CommandDescription& command, std::string* page) {
  if (command.commands.empty()) {
    *page += ".SS " + Synopsis(path, command) + "\n" + Escaped(command.help) + ".\n";
    for (const auto& argument : command.arguments) *page += OptionText(argument, true);
    for (const auto& option : command.options) {
      if (!IsHelp(option)) *page += OptionText(option);
    }
  }
  for (const auto& child : command.commands) AddCommand(path + " " + child.name, child, page);
}

}  // namespace

std::string ManualPage(const CommandDescription& program, const std::string& version) {
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- indexed tables in regions, asked "
      "in "
      "SQL\n.SH SYNOPSIS\n\\fB{}\\fR [\\fIOPTION\\fR...] \\fICOMMAND\\fR ...\n.SH "
      "DESCRIPTION\n{}\n",
      program.name, Escaped(version), program.name, program.name, Escaped(program.help));
  page += ".SH OPTIONS\nOf all commands:\n";
  for (const auto& option : program.options) page += OptionText(option);
  page += ".SH COMMANDS\n";
  for (const auto& command : program.commands)
    AddCommand(program.name + " " + command.name, command, &page);
  page +=
      ".SH ENVIRONMENT\n.TP\nTAMIS_STORE\nThe store when \\fB\\-\\-store\\fR is not given.\n"
      ".SH EXIT STATUS\n0: done. 1: it could not be done, or what was asked for is not there. 2: "
      "the "
      "command line is wrong. 130: interrupted. \\fBtamis filter\\fR ends as \\fBgrep\\fR(1) does: "
      "1 "
      "when no line was selected, 2 on trouble.\n";
  return page;
}

}  // namespace tamis
