// The rebuild of a filter by `tamis guard`: load fills a new filter with all keys and puts it in
// its place; start and abort are for loads whose keys another program reads.
#pragma once

#include "tamis/base/status.h"
#include "tamis/cli/guard_arguments.h"

namespace tamis {

Status LoadFilter(const GuardArguments& arguments);
Status StartRebuild(const GuardArguments& arguments);  // prints its id
Status AbortRebuild(const GuardArguments& arguments);

}  // namespace tamis
