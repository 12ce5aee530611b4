#include "tamis/server/deadlines.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace tamis::server {

struct Deadlines::State {
  Executor* executor = nullptr;
  std::mutex mutex;
  std::map<Id, std::function<void()>> waiting;
  uint64_t next = 0;
  Time armed = Time::max();  // the time of the earliest timer that has not run
};

Deadlines::Deadlines(Executor* executor) : state_(std::make_shared<State>()) {
  state_->executor = executor;
}

Deadlines::Id Deadlines::Add(Duration delay, std::function<void()> passed) {
  const Time at = state_->executor->Now() + delay;
  Id id;
  bool is_earliest = false;
  {
    std::lock_guard lock(state_->mutex);
    id = {at, state_->next++};
    state_->waiting.emplace(id, std::move(passed));
    is_earliest = at < state_->armed;
    if (is_earliest) state_->armed = at;
  }
  if (is_earliest) Arm(state_, at);
  return id;
}

void Deadlines::Cancel(const Id& id) {
  std::function<void()> cancelled;  // destroyed without the mutex
  std::lock_guard lock(state_->mutex);
  const auto found = state_->waiting.find(id);
  if (found == state_->waiting.end()) return;
  cancelled = std::move(found->second);
  state_->waiting.erase(found);
}

void Deadlines::Arm(const std::shared_ptr<State>& state, Time at) {
  const Duration delay = std::max(Duration(0), at - state->executor->Now());
  state->executor->PostAfter(delay, [weak = std::weak_ptr<State>(state), at] {
    if (const auto state = weak.lock()) Run(state, at);
  });
}

void Deadlines::Run(const std::shared_ptr<State>& state, Time at) {
  std::vector<std::function<void()>> passed;
  bool armed = false;
  Time next{};
  {
    std::lock_guard lock(state->mutex);
    const Time now = std::max(at, state->executor->Now());
    while (!state->waiting.empty() && state->waiting.begin()->first.first <= now) {
      passed.push_back(std::move(state->waiting.begin()->second));
      state->waiting.erase(state->waiting.begin());
    }
    if (state->armed < at) armed = true;  // an earlier timer will arm the next one
    if (!armed) {
      armed = state->waiting.empty();
      next = armed ? Time::max() : state->waiting.begin()->first.first;
      state->armed = next;
    }
  }
  for (const auto& one : passed) one();
  if (!armed) Arm(state, next);
}

}  // namespace tamis::server
