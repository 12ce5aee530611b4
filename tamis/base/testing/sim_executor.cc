#include "tamis/base/testing/sim_executor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tamis {

void SimExecutor::Post(Task task) {
  PostAfter(Duration(random_.Uniform(static_cast<uint64_t>(max_delay_.count()) + 1)),
            std::move(task));
}

void SimExecutor::PostAfter(Duration delay, Task task) {
  tasks_.emplace(std::pair(now_ + delay, next_id_++), std::move(task));
}

bool SimExecutor::RunOne() {
  if (tasks_.empty()) return false;
  auto first = tasks_.extract(tasks_.begin());
  if (first.key().first > now_) now_ = first.key().first;
  first.mapped()();
  return true;
}

void SimExecutor::RunFor(Duration duration) {
  const Time end = now_ + duration;
  while (!tasks_.empty() && tasks_.begin()->first.first <= end) RunOne();
  if (now_ < end) now_ = end;
}

bool SimExecutor::WaitFor(Waiter* waiter, Time deadline) {
  while (!waiter->done()) {
    if (deadline != Time::max() && (tasks_.empty() || tasks_.begin()->first.first > deadline)) {
      now_ = std::max(now_, deadline);
      return false;
    }
    if (!RunOne()) {
      std::fputs("SimExecutor: waiting, but no task is left that could end the wait\n", stderr);
      std::abort();
    }
  }
  return true;
}

}  // namespace tamis
