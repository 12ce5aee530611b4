// Executor for tests: one thread, virtual time, and an order of tasks drawn from a seed. The same
// seed and the same calls give the same run, whatever the machine does.
#pragma once

#include <map>

#include "tamis/base/executor.h"
#include "tamis/base/random.h"

namespace tamis {

class SimExecutor : public Executor {
 public:
  // A posted task starts after a random delay below `max_delay`, so that tasks posted together
  // interleave in every order.
  SimExecutor(uint64_t seed, Duration max_delay) : random_(seed), max_delay_(max_delay) {}

  Time Now() const override { return now_ += step_; }
  void Post(Task task) override;
  void PostAfter(Duration delay, Task task) override;
  using Executor::WaitFor;
  // Runs tasks until the waiter is woken, or up to the deadline. Aborts the process when there is
  // neither a deadline nor a task left: the test would hang.
  bool WaitFor(Waiter* waiter, Time deadline) override;

  // Runs the next task, at its time. False when there is none.
  bool RunOne();
  // Runs everything that is due up to now + duration, and sets the clock there.
  void RunFor(Duration duration);
  // Code takes time, too: so long between two looks at the clock.
  void set_step(Duration step) { step_ = step; }
  // The clock goes on, but nothing runs: what becomes due runs late, as after a suspended machine.
  void Jump(Duration duration) { now_ += duration; }
  // Drops all tasks, as a process that dies.
  void Clear() { tasks_.clear(); }

  Random& random() { return random_; }

 private:
  Random random_;
  Duration max_delay_;
  mutable Time now_{std::chrono::hours(1)};
  Duration step_{0};
  uint64_t next_id_ = 0;
  std::map<std::pair<Time, uint64_t>, Task> tasks_;
};

}  // namespace tamis
