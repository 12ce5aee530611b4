#include "tamis/cluster/await_index.h"

#include "tamis/cluster/poll_pause.h"

namespace tamis {

Result<IndexProgress> AwaitIndex(ClusterAdmin* admin, Executor* executor, const Wait& wait,
                                 const std::string& table, const std::string& index) {
  Backoff backoff(std::chrono::milliseconds(1), std::chrono::seconds(1));
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(IndexProgress progress,
                           AwaitResult<IndexProgress>(executor, wait, [&](auto done) {
                             admin->GetIndexProgress(table, index, std::move(done));
                           }));
    if (progress.complete == progress.regions) return progress;
    if (!PauseBeforePoll(executor, wait, &backoff)) {
      return wait.Failure().WithContext(
          "waited for index \"" + index + "\" of table \"" + table + "\", which is complete in " +
          std::to_string(progress.complete) + " of " + std::to_string(progress.regions) +
          " regions; the others go on building it");
    }
  }
}

}  // namespace tamis
