// Where the threads of another process of ours stand.
#pragma once

#include <sys/types.h>

namespace tamis::lsm {

// In the process that may be asked; costs nothing until then.
void ShowStacksWhenAsked();

// Has each thread of that process, a child of this one, print its stack to stderr.
void AskForStacks(pid_t process);

}  // namespace tamis::lsm
