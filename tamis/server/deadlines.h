// Deadlines: calls at points in time, most of which are cancelled before. They keep one timer of
// the executor, which cannot cancel its timers, instead of one for each call.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "tamis/base/executor.h"

namespace tamis::server {

class Deadlines {
 public:
  using Id = std::pair<Time, uint64_t>;

  // The executor must outlive this object.
  explicit Deadlines(Executor* executor);

  // Calls `passed` after `delay` on a thread of the executor, unless it is cancelled.
  Id Add(Duration delay, std::function<void()> passed);
  // The call may be running, or have been made.
  void Cancel(const Id& id);

 private:
  struct State;
  static void Arm(const std::shared_ptr<State>& state, Time at);
  static void Run(const std::shared_ptr<State>& state, Time at);

  std::shared_ptr<State> state_;
};

}  // namespace tamis::server
