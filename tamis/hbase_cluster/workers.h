// Workers: threads for blocking calls, and for longer work that consists of steps. Between two
// steps only a timer of the executor waits, so that work which waits for minutes occupies no
// thread.
//
// Threads: safe. Results are delivered on the executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/base/thread_executor.h"

namespace tamis {

class Workers {
 public:
  // One step. Returns the pause before the next step; nullopt if the work is done.
  using Step = std::function<Result<std::optional<Duration>>()>;

  // The executor must outlive this object.
  Workers(Executor* executor, int threads)
      : executor_(executor), threads_(std::make_shared<ThreadExecutor>(threads)) {}
  ~Workers() { Stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // `done` gets the result of `work`: a Status or a Result<T>.
  template <class Work, class Done>
  void Run(Work work, Done done) {
    threads_->Post([executor = executor_, work = std::move(work), done = std::move(done)] {
      executor->Post([done, answer = work()] { done(answer); });
    });
  }
  // Runs the steps one after the other, each on any thread. `done` gets the error that ended the
  // work, or ok.
  void RunSteps(Step step, std::function<void(Status)> done);

  // Waits for running steps and calls, and drops all others: they are not done.
  void Stop() { threads_->Stop(); }

 private:
  Executor* const executor_;
  const std::shared_ptr<ThreadExecutor> threads_;  // timers of the executor have weak references
};

}  // namespace tamis
