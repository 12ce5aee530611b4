#include "tamis/hbase_cluster/workers.h"

namespace tamis {
namespace {

struct StepwiseWork {
  Workers::Step step;
  std::function<void(Status)> done;
};

void RunStep(Executor* executor, const std::shared_ptr<ThreadExecutor>& threads,
             const std::shared_ptr<StepwiseWork>& work) {
  threads->Post([executor, weak = std::weak_ptr(threads), work] {
    const auto pause = work->step();
    if (!pause.ok() || !pause->has_value()) {
      executor->Post([work, status = pause.status()] { work->done(status); });
      return;
    }
    executor->PostAfter(**pause, [executor, weak, work] {
      if (const auto alive = weak.lock()) RunStep(executor, alive, work);
    });
  });
}

}  // namespace

void Workers::RunSteps(Step step, std::function<void(Status)> done) {
  RunStep(executor_, threads_,
          std::make_shared<StepwiseWork>(StepwiseWork{std::move(step), std::move(done)}));
}

}  // namespace tamis
