// NodeClock: the executor of one node of a simulated cluster, whose clock started elsewhere than
// the others' and runs a little faster or slower.
#pragma once

#include "tamis/base/testing/sim_executor.h"

namespace tamis {

class NodeClock : public Executor {
 public:
  // `drift` in thousandths: 10 = one per cent too fast.
  NodeClock(SimExecutor* executor, Duration ahead, int drift)
      : executor_(executor), start_(executor->Now()), ahead_(ahead), drift_(drift) {}

  Time Now() const override {
    const Duration passed = executor_->Now() - start_;
    return start_ + ahead_ + passed + passed * drift_ / 1000;
  }
  void Post(Task task) override { executor_->Post(std::move(task)); }
  void PostAfter(Duration delay, Task task) override {
    executor_->PostAfter(Real(delay), std::move(task));
  }
  using Executor::WaitFor;
  bool WaitFor(Waiter* waiter, Time deadline) override {
    if (deadline == Time::max()) return executor_->WaitFor(waiter, deadline);
    return executor_->WaitFor(waiter, executor_->Now() + Real(deadline - Now()));
  }

 private:
  // The executor's duration that this node's clock shows as `duration`; never less.
  Duration Real(Duration duration) const { return duration * 1000 / (1000 + drift_) + Duration(1); }

  SimExecutor* const executor_;
  const Time start_;
  const Duration ahead_;
  const int drift_;
};

}  // namespace tamis
