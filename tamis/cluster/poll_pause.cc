#include "tamis/cluster/poll_pause.h"

#include <algorithm>

namespace tamis {

bool PauseBeforePoll(Executor* executor, const Wait& wait, Backoff* backoff) {
  // Nothing answers: the pause ends by the clock or by cancellation.
  Answers<bool> nobody(executor);
  const Wait pause{.deadline = std::min(wait.deadline, executor->Now() + backoff->Next()),
                   .cancelled = wait.cancelled};
  (void)nobody.Next(pause);
  return !wait.IsCancelled() && executor->Now() < wait.deadline;
}

}  // namespace tamis
