// The manual page of the program, made from its command line.
#pragma once

#include <string>

#include "tamis/cli/command_line.h"

namespace tamis {

// The page of section 1, for man(7). `version` is "tamis 1.2.3".
std::string ManualPage(const CommandDescription& program, const std::string& version);

}  // namespace tamis
