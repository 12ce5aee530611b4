// ManualExecutor: for tests of code that has threads of its own and takes its time from an
// executor. The clock stands still until the test moves it; tasks run on the test's thread, inside
// of RunUntil. (SimExecutor is for code without threads: its clock moves by itself.)
//
// Threads: any thread may post and wait; all else is for the test's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "tamis/base/executor.h"

namespace tamis {

class ManualExecutor : public Executor {
 public:
  Time Now() const override {
    std::lock_guard lock(mutex_);
    return now_;
  }
  void Post(Task task) override { PostAfter(Duration(0), std::move(task)); }
  void PostAfter(Duration delay, Task task) override {
    std::lock_guard lock(mutex_);
    tasks_.emplace(now_ + delay, std::move(task));
    ++posted_;
    changed_.notify_all();
  }
  using Executor::WaitFor;
  bool WaitFor(Waiter* waiter, Time deadline) override {
    return waiter->Block([=, this] { return deadline - Now(); });
  }

  // Runs due tasks, and waits for further ones, until `is_over` returns true. `is_over` is asked
  // when no task is due, and again after each post.
  void RunUntil(const std::function<bool()>& is_over) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (!tasks_.empty() && tasks_.begin()->first <= now_) {
        const Task task = std::move(tasks_.begin()->second);
        tasks_.erase(tasks_.begin());
        lock.unlock();
        task();
        lock.lock();
        continue;
      }
      const uint64_t posted = posted_;
      lock.unlock();
      const bool over = is_over();
      lock.lock();
      if (over) return;
      changed_.wait(lock, [&] { return posted_ != posted; });
    }
  }
  void Advance(Duration duration) {
    std::lock_guard lock(mutex_);
    now_ += duration;
  }
  // The number of tasks that wait for the clock.
  size_t timers() const {
    std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const auto& [when, task] : tasks_) count += when > now_ ? 1 : 0;
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Time now_ = std::chrono::hours(1);
  uint64_t posted_ = 0;
  std::multimap<Time, Task> tasks_;
};

}  // namespace tamis
