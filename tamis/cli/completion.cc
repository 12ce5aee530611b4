#include "tamis/cli/completion.h"

#include <fmt/format.h>

#include <functional>

namespace tamis {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

// 'text' for a shell.
std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

using Visit = std::function<void(const std::string& path, const CommandDescription& command)>;

void Walk(const std::string& path, const CommandDescription& command, const Visit& visit) {
  visit(path, command);
  for (const auto& child : command.commands) Walk(path + " " + child.name, child, visit);
}

std::string OptionNames(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return Join(names);
}

// Both shells have the same tables:
//   below[PATH]          the commands below it, in words
//   options[PATH]        its options
//   values[PATH --OPT]   what the option can be given; empty: a file or anything
// and the same way to find PATH among the words before the cursor: what follows an option that
// wants a value is that value.
std::string Tables(const CommandDescription& program) {
  std::string below;
  std::string options;
  std::string values;
  const auto add = [](const std::string& key, const std::string& words, std::string* table) {
    *table += "    " + ShellQuoted(key) + " " + ShellQuoted(words) + "\n";
  };
  Walk(program.name, program, [&](const std::string& path, const CommandDescription& command) {
    std::vector<std::string> names;
    for (const auto& child : command.commands) names.push_back(child.name);
    add(path, Join(names), &below);
    add(path, OptionNames(command), &options);
    for (const auto& option : command.options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) {
        add(path + " " + name, Join(option.words), &values);
      }
    }
  });
  return "  below=(\n" + below + "  )\n  options=(\n" + options + "  )\n  values=(\n" + values +
         "  )\n";
}

}  // namespace

std::string BashCompletion(const CommandDescription& program) {
  return fmt::format(R"(# bash completion for {0}, made by `{0} completion bash`.
_{0}() {{
  local -A below options values
{1}  local word current=${{COMP_WORDS[COMP_CWORD]}} path={0} wants= found=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    if [[ -n $wants ]]; then
      wants=
    elif [[ $word == -* ]]; then
      if [[ -n ${{values["$path $word"]+known}} ]]; then wants="$path $word"
      elif [[ -n ${{values["{0} $word"]+known}} ]]; then wants="{0} $word"; fi
    elif [[ -n ${{below["$path $word"]+known}} ]]; then
      path="$path $word"
    fi
  done
  if [[ -n $wants ]]; then found=${{values[$wants]}}
  elif [[ $current == -* ]]; then found="${{options[$path]}} ${{options[{0}]}}"
  else found=${{below[$path]}}; fi
  if [[ -n $found ]]; then mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current")
  else mapfile -t COMPREPLY < <(compgen -f -- "$current"); fi
}}
complete -o filenames -F _{0} {0}
)",
                     program.name, Tables(program));
}

std::string ZshCompletion(const CommandDescription& program) {
  std::string help;
  Walk(program.name, program, [&](const std::string& path, const CommandDescription& command) {
    help += "    " + ShellQuoted(path) + " " + ShellQuoted(command.help) + "\n";
  });
  return fmt::format(R"(#compdef {0}
# zsh completion for {0}, made by `{0} completion zsh`.
_{0}() {{
  local -A below options values help
{1}  help=(
{2}  )
  local word current=$words[CURRENT] at={0} wants= name
  local -a found
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    if [[ -n $wants ]]; then
      wants=
    elif [[ $word == -* ]]; then
      if (( ${{+values[$at $word]}} )); then wants="$at $word"
      elif (( ${{+values[{0} $word]}} )); then wants="{0} $word"; fi
    elif (( ${{+below[$at $word]}} )); then
      at="$at $word"
    fi
  done
  if [[ -n $wants ]]; then
    found=(${{=values[$wants]}})
    if (( $#found )); then compadd -- $found; else _files; fi
  elif [[ $current == -* ]]; then
    found=(${{=options[$at]}} ${{=options[{0}]}})
    compadd -- ${{(u)found}}
  elif [[ -n $below[$at] ]]; then
    for name in ${{=below[$at]}}; do found+=("$name:$help[$at $name]"); done
    _describe command found
  else
    _files
  fi
}}
_{0} "$@"
)",
                     program.name, Tables(program), help);
}

}  // namespace tamis
