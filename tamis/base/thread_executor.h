// ThreadExecutor: an Executor on real threads: a pool with timers (asio). Its clock is
// CLOCK_BOOTTIME, which goes on while the machine is suspended, so that a lease ends in time then.
//
// A task that ends with std::bad_alloc is dropped, and its thread goes on with the next one. A task
// that a caller waits for must turn the exception into an answer itself.
//
// Threads: safe, but see Stop and the destructor.
#pragma once

#include <memory>
#include <mutex>

#include "tamis/base/executor.h"

namespace tamis {

class ThreadExecutor : public Executor {
 public:
  explicit ThreadExecutor(int threads);  // throws std::system_error when no thread can be started
  // Waits for the tasks that run, drops the others.
  ~ThreadExecutor() override;

  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;

  Time Now() const override;
  void Post(Task task) override;
  void PostAfter(Duration delay, Task task) override;
  using Executor::WaitFor;
  bool WaitFor(Waiter* waiter, Time deadline) override {
    return waiter->Block([=, this] { return deadline - Now(); });
  }

  // Waits for the tasks that run and drops the others; afterwards Post does nothing. Any thread may
  // post meanwhile and later. REQUIRES: one caller.
  void Stop();

 private:
  struct Pool;
  std::mutex mutex_;  // against posts while it stops
  std::unique_ptr<Pool> pool_;
};

}  // namespace tamis
