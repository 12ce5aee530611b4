// Executor: the clock, and the threads on which tasks run.
//
// A cluster and its coordinators read the time and run tasks only through the Executor that they
// are given: ThreadExecutor (real threads, CLOCK_BOOTTIME) or SimExecutor (one thread, virtual
// time, an order drawn from a seed). So a whole cluster can run deterministically in a test; that
// is why Executor is an interface. Other executors wrap one of the two: the executor of a region
// server (tamis/rocks/server_executor.h) can be paused and killed.
//
// The following have threads of their own: the writers and compactions of a store, the connections
// of the HBase client and of the HTTP client, `tamis serve` with its statements, and blocking calls
// to HBase, such as those to its master (tamis/hbase_cluster/workers.h).
#pragma once

#include <algorithm>
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

// Converts nanoseconds that came in a message: capped at one hour, so that the sum with any time is
// valid.
inline Duration SentDuration(uint64_t ns) {
  constexpr uint64_t kLongest = 3'600'000'000'000;
  return Duration(ns < kLongest ? ns : kLongest);
}

class Executor {
 public:
  using Task = std::function<void()>;

  virtual ~Executor() = default;

  virtual Time Now() const = 0;

  // Runs the task soon, in any order, maybe at the same time as other tasks. Tasks must not block
  // on other tasks. A task that has not begun when the executor ends is dropped.
  virtual void Post(Task task) = 0;
  virtual void PostAfter(Duration delay, Task task) = 0;

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
    // Blocks the thread until WakeUp (true), or until time_left() is not positive (false). Calls
    // time_left() again after every wake-up of the thread.
    bool Block(const std::function<Duration()>& time_left) {
      // Longer waits than this overflow inside of the library.
      constexpr Duration kLongest = std::chrono::hours(1);
      std::unique_lock lock(mutex_);
      while (!done_) {
        const Duration left = time_left();
        if (left <= Duration(0)) return false;
        changed_.wait_for(lock, std::min(left, kLongest));
      }
      return true;
    }

   private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
  };
  // Returns once the waiter is woken (true), or at the deadline (false). Not to be called from a
  // task of a ThreadExecutor: it blocks.
  virtual bool WaitFor(Waiter* waiter, Time deadline) = 0;
  void WaitFor(Waiter* waiter) { WaitFor(waiter, Time::max()); }
};

// Calls start(callback) and returns the value that the callback receives. Blocks like WaitFor,
// which runs the tasks of a SimExecutor meanwhile.
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

// Returns when `duration` has passed. Blocks like WaitFor, which runs the tasks of a SimExecutor
// meanwhile.
inline void Sleep(Executor* executor, Duration duration) {
  Executor::Waiter never_woken;
  executor->WaitFor(&never_woken, executor->Now() + duration);
}

}  // namespace tamis
