// tamis filter demo: what has been published about filters, computed and measured anew.
#pragma once

#include "tamis/cli/command.h"

namespace tamis {

void AddFilterDemo(Command filter, Context* context);

}  // namespace tamis
