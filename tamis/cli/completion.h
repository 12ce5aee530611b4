// Completion of the command line in shells: scripts that know every command and option.
#pragma once

#include <string>

#include "tamis/cli/command_line.h"

namespace tamis {

// To be sourced, or installed where bash-completion looks.
std::string BashCompletion(const CommandDescription& program);
// To be installed in a directory of $fpath as _tamis.
std::string ZshCompletion(const CommandDescription& program);

}  // namespace tamis
