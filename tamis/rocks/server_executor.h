// ServerExecutor: where one region server's tasks run. It can be paused (tasks wait) and killed
// (tasks are dropped), which is how tests and the shell make a server stop or die without ending
// the process.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>

#include "tamis/base/executor.h"

namespace tamis {

class ServerExecutor : public Executor, public std::enable_shared_from_this<ServerExecutor> {
 public:
  // `inline_steps`: Step runs its task at once, on the caller's thread; else it posts it, so that a
  // simulation interleaves the steps of many operations.
  ServerExecutor(Executor* executor, bool inline_steps)
      : executor_(executor), inline_steps_(inline_steps) {}

  Time Now() const override { return executor_->Now(); }
  void Post(Task task) override {
    executor_->Post([self = shared_from_this(), task = std::move(task)]() mutable {
      self->Run(std::move(task));
    });
  }
  void PostAfter(Duration delay, Task task) override {
    executor_->PostAfter(delay, [self = shared_from_this(), task = std::move(task)]() mutable {
      self->Run(std::move(task));
    });
  }
  using Executor::WaitFor;
  bool WaitFor(Waiter* waiter, Time deadline) override {
    return executor_->WaitFor(waiter, deadline);
  }

  // The next step of an operation.
  void Step(Task task) {
    if (inline_steps_) {
      Run(std::move(task));
    } else {
      Post(std::move(task));
    }
  }

  // Posts *task, which throws nothing. Where there is no memory for that, it runs on this thread
  // before this returns: what waits for a lock or a gate is never lost.
  void PostOrRun(const std::shared_ptr<Task>& task) noexcept {
    try {
      Post([task] { (*task)(); });
    } catch (const std::bad_alloc&) {
      if (!killed_) (*task)();
    }
  }

  bool steps_are_inline() const { return inline_steps_; }

  void Pause() { paused_ = true; }
  void Resume();
  void Kill() {
    killed_ = true;
    Resume();
  }
  bool killed() const { return killed_; }
  bool paused() const { return paused_; }

 private:
  void Run(Task task) {
    if (killed_) return;
    if (paused_) {
      std::lock_guard lock(mutex_);
      if (paused_) {
        waiting_.push_back(std::move(task));
        return;
      }
    }
    task();
  }

  Executor* const executor_;
  const bool inline_steps_;
  std::atomic<bool> paused_ = false;
  std::atomic<bool> killed_ = false;
  std::mutex mutex_;
  std::deque<Task> waiting_;
};

inline void ServerExecutor::Resume() {
  std::deque<Task> tasks;
  {
    std::lock_guard lock(mutex_);
    paused_ = false;
    tasks.swap(waiting_);
  }
  if (killed_) return;
  for (auto& task : tasks) Post(std::move(task));
}

}  // namespace tamis
