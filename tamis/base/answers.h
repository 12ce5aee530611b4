// Answers: collects the answers to asynchronous questions, and waits for them: Next blocks until
// one has arrived, the deadline is over, or the wait is cancelled.
//
//   Answers<Result<Reply>> answers(executor);
//   for (size_t i = 0; i < servers.size(); ++i) servers[i]->Ask(answers.To(i));
//   while (auto answer = answers.Next(wait)) Take(answer->question, answer->value);
//
// An answer that arrives after its Answers was destroyed is dropped.
//
// An answer for which there is no memory when it arrives is lost; Next() then throws
// std::bad_alloc, on the waiting thread.
//
// Threads: answers may arrive on any thread; all else needs exclusive access. Next() must not be
// called from a task of a ThreadExecutor: it blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"

namespace tamis {

// How long a caller waits: until a deadline, or until it is cancelled.
struct Wait {
  Time deadline = Time::max();
  const std::atomic<bool>* cancelled = nullptr;  // set to true from anywhere, a signal handler too

  bool IsCancelled() const { return cancelled != nullptr && cancelled->load(); }
  // Why there is no answer.
  Status Failure() const {
    return IsCancelled() ? Cancelled("cancelled") : DeadlineExceeded("no answer in time");
  }
};

template <class T>
class Answers {
 public:
  struct Answer {
    size_t question;
    T value;
  };

  explicit Answers(Executor* executor)
      : executor_(executor), arrived_(std::make_shared<Arrived>()) {}

  // The callback of a question; what it is given is the answer.
  std::function<void(T)> To(size_t question) const {
    return [weak = std::weak_ptr(arrived_), question](T value) {
      if (auto arrived = weak.lock()) arrived->Put({question, std::move(value)});
    };
  }

  // The next answer, in the order in which they came. nullopt when the wait is over before.
  std::optional<Answer> Next(const Wait& wait) {
    // Setting `cancelled` wakes no thread, so it is polled.
    static constexpr Duration kLookForCancel = std::chrono::milliseconds(50);
    while (true) {
      if (auto answer = arrived_->Take()) return answer;
      const Time now = executor_->Now();
      if (now >= wait.deadline || wait.IsCancelled()) return std::nullopt;
      const auto waiter = std::make_shared<Executor::Waiter>();
      if (!arrived_->WakeWhenPut(waiter)) continue;
      executor_->WaitFor(waiter.get(), wait.cancelled == nullptr
                                           ? wait.deadline
                                           : std::min(wait.deadline, now + kLookForCancel));
    }
  }

 private:
  class Arrived {
   public:
    void Put(Answer answer) noexcept {
      std::shared_ptr<Executor::Waiter> waiter;
      {
        std::lock_guard lock(mutex_);
        try {
          answers_.push_back(std::move(answer));
        } catch (const std::bad_alloc&) {
          lost_ = true;
        }
        waiter = std::move(waiter_);
      }
      if (waiter) waiter->WakeUp();
    }
    std::optional<Answer> Take() {
      std::lock_guard lock(mutex_);
      if (std::exchange(lost_, false)) throw std::bad_alloc();
      if (answers_.empty()) return std::nullopt;
      std::optional<Answer> first(std::move(answers_.front()));
      answers_.pop_front();
      return first;
    }
    // False when there is something already.
    bool WakeWhenPut(std::shared_ptr<Executor::Waiter> waiter) {
      std::lock_guard lock(mutex_);
      if (!answers_.empty() || lost_) return false;
      waiter_ = std::move(waiter);
      return true;
    }

   private:
    std::mutex mutex_;
    std::deque<Answer> answers_;
    bool lost_ = false;  // an answer was lost, since memory did not suffice
    std::shared_ptr<Executor::Waiter> waiter_;
  };

  Executor* const executor_;
  const std::shared_ptr<Arrived> arrived_;
};

// Calls start(callback) and returns the Result<T> that the callback receives. kDeadlineExceeded or
// kCancelled if it receives none before the wait is over; the operation may still happen.
template <class T, class Start>
Result<T> AwaitResult(Executor* executor, const Wait& wait, Start&& start) {
  Answers<Result<T>> answers(executor);
  start(answers.To(0));
  auto answer = answers.Next(wait);
  return answer.has_value() ? std::move(answer->value) : Result<T>(wait.Failure());
}

// The same for a callback that receives a Status.
template <class Start>
Status AwaitStatus(Executor* executor, const Wait& wait, Start&& start) {
  Answers<Status> answers(executor);
  start(answers.To(0));
  auto answer = answers.Next(wait);
  return answer.has_value() ? std::move(answer->value) : wait.Failure();
}

}  // namespace tamis
