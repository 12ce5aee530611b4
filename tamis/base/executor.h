// Executor: the clock and the place where things run, both injected.
//
// Nothing in Tamis reads a clock or starts a thread on its own; it is given an Executor. There are
// two: ThreadExecutor (real threads, CLOCK_BOOTTIME) and SimExecutor (one thread, virtual time, an
// order drawn from a seed), so that a whole cluster runs deterministically in a test. This is why
// it is an interface although the project has few of those.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace tamis {

// Time since an arbitrary start that never steps back and that runs while the machine is suspended.
using Time = std::chrono::nanoseconds;
using Duration = std::chrono::nanoseconds;

class Executor {
 public:
  using Task = std::function<void()>;

  virtual ~Executor() = default;

  virtual Time Now() const = 0;

  // Runs the task soon, in any order, maybe at the same time as other tasks. Tasks must not block
  // on other tasks. What has not begun when the executor ends is dropped.
  virtual void Post(Task task) = 0;
  virtual void PostAfter(Duration delay, Task task) = 0;

  // Returns once done() is true. `wake` must be told (WakeUp) whenever done() may have become true.
  // Not to be called from a task of a ThreadExecutor.
  class Waiter {
   public:
    void WakeUp() {
      std::lock_guard lock(mutex_);
      done_ = true;
      changed_.notify_all();
    }
    bool done() const {
      std::lock_guard lock(mutex_);
      return done_;
    }
    void Block() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return done_; });
    }

   private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
  };
  virtual void WaitFor(Waiter* waiter) = 0;
};

// Calls start(callback) and returns what the callback was given; drives a SimExecutor meanwhile.
//
//   Result<Row> row = Await<Result<Row>>(executor, [&](auto done) { server.Get(key, done); });
template <class T, class Start>
T Await(Executor* executor, Start&& start) {
  struct State {
    Executor::Waiter waiter;
    std::optional<T> value;
  };
  auto state = std::make_shared<State>();
  start([state](T value) {
    state->value.emplace(std::move(value));
    state->waiter.WakeUp();
  });
  executor->WaitFor(&state->waiter);
  return std::move(*state->value);
}

}  // namespace tamis
