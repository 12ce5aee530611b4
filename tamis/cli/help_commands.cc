// tamis completion, tamis man: the command line for shells and for man(1).
#include <cstdio>

#include "tamis/cli/command.h"
#include "tamis/cli/completion.h"
#include "tamis/cli/manual_page.h"

namespace tamis {

void AddHelpCommands(CommandLine& line, Invocation* invocation) {
  auto shell = std::make_shared<std::string>();
  const Command completion = line.AddCommand(
      "completion", "Print the script by which a shell completes this command line");
  completion.AddOption("SHELL", *shell, "The shell").Required().OneOf({"bash", "zsh"});
  completion.OnParsed([&line, invocation, shell] {
    invocation->run = [&line, shell] {
      const CommandDescription program = line.Describe();
      const std::string script =
          *shell == "bash" ? BashCompletion(program) : ZshCompletion(program);
      std::fputs(script.c_str(), stdout);
      return kExitOk;
    };
  });
  line.AddCommand("man", "Print the manual page: tamis man | man -l -")
      .OnParsed([&line, invocation] {
        invocation->run = [&line] {
          std::fputs(ManualPage(line.Describe(), line.version()).c_str(), stdout);
          return kExitOk;
        };
      });
}

}  // namespace tamis
