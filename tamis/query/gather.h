// Gather: sends requests to several servers at once and waits until all have answered, the time is
// over, or somebody cancels. Late answers are dropped.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"

namespace tamis {

// calls[i] starts call i and hands its result to the callback it is given, on any thread. Result i
// is kDeadlineExceeded when it did not come in time, kCancelled when *cancelled became true first.
template <class T>
std::vector<Result<T>> Gather(
    Executor* executor, Duration timeout, const std::atomic<bool>* cancelled,
    const std::vector<std::function<void(std::function<void(Result<T>)>)>>& calls) {
  static constexpr Duration kLookForCancel = std::chrono::milliseconds(50);
  struct State {
    std::mutex mutex;
    std::vector<std::optional<Result<T>>> results;
    size_t missing;
    bool over = false;
    Executor::Waiter waiter;
  };
  auto state = std::make_shared<State>();
  state->results.resize(calls.size());
  state->missing = calls.size();
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i]([state, i](Result<T> result) {
      {
        std::lock_guard lock(state->mutex);
        if (state->over || state->results[i].has_value()) return;
        state->results[i].emplace(std::move(result));
        if (--state->missing > 0) return;
      }
      state->waiter.WakeUp();
    });
  }
  const Time deadline = executor->Now() + timeout;
  const auto is_cancelled = [cancelled] { return cancelled != nullptr && cancelled->load(); };
  // Somebody who cancels wakes nobody: looks now and then.
  const auto next_look = [&] {
    return cancelled == nullptr ? deadline : std::min(deadline, executor->Now() + kLookForCancel);
  };
  if (!calls.empty()) {
    while (!executor->WaitFor(&state->waiter, next_look())) {
      if (is_cancelled() || executor->Now() >= deadline) break;
    }
  }
  std::lock_guard lock(state->mutex);
  state->over = true;
  std::vector<Result<T>> results;
  for (auto& result : state->results) {
    if (result.has_value()) {
      results.push_back(std::move(*result));
    } else if (is_cancelled()) {
      results.push_back(Cancelled("cancelled"));
    } else {
      results.push_back(DeadlineExceeded("no answer in time"));
    }
  }
  return results;
}

}  // namespace tamis
