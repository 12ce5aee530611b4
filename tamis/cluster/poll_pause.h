// PauseBeforePoll: the pause between two polls of something that ends by itself.
#pragma once

#include "tamis/base/answers.h"
#include "tamis/base/backoff.h"
#include "tamis/base/executor.h"

namespace tamis {

// Blocks for the next pause of `backoff`, by the executor's clock. False if `wait` is over:
// cancelled, or its deadline has come.
bool PauseBeforePoll(Executor* executor, const Wait& wait, Backoff* backoff);

}  // namespace tamis
