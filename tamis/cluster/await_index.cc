#include "tamis/cluster/await_index.h"

#include "tamis/cluster/index_wait.h"
#include "tamis/cluster/poll_pause.h"

namespace tamis {

Result<IndexProgress> AwaitIndex(ClusterAdmin* admin, Executor* executor, const Wait& wait,
                                 const std::string& table, const std::string& index,
                                 const std::function<void(const IndexProgress&)>& show) {
  const std::string name = "index \"" + index + "\" of table \"" + table + "\"";
  Backoff backoff(std::chrono::milliseconds(1), std::chrono::seconds(1));
  IndexWait patience;
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(IndexProgress progress,
                           AwaitResult<IndexProgress>(executor, wait, [&](auto done) {
                             admin->GetIndexProgress(table, index, std::move(done));
                           }));
    if (progress.complete == progress.regions) return progress;
    patience.Look(progress, executor->Now());
    if (const Status failure = patience.GivesUp(); !failure.ok()) {
      return Status(failure.code(),
                    "cannot wait for " + name + " any longer, " + progress.ToString() +
                        (progress.failure->given_up
                             ? ""
                             : "; the servers go on trying: remove the cause, then wait again "
                               "(tamis index wait " +
                                   table + " " + index + ")"));
    }
    if (patience.HasNews() && show) show(progress);
    if (!PauseBeforePoll(executor, wait, &backoff)) {
      return wait.Failure().WithContext("waited for " + name + ", " + progress.ToString() +
                                        "; the servers go on building it");
    }
  }
}

}  // namespace tamis
