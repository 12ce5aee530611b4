#include "tamis/cluster/await_job.h"

#include "tamis/cluster/poll_pause.h"

namespace tamis {

Result<JobInfo> AwaitJob(ClusterAdmin* admin, Executor* executor, const Wait& wait, JobSpec spec) {
  TAMIS_ASSIGN_OR_RETURN(const uint64_t job, AwaitResult<uint64_t>(executor, wait, [&](auto done) {
                           admin->StartJob(std::move(spec), std::move(done));
                         }));
  Backoff backoff(std::chrono::milliseconds(1), std::chrono::seconds(1));
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(JobInfo info, AwaitResult<JobInfo>(executor, wait, [&](auto done) {
                             admin->GetJob(job, std::move(done));
                           }));
    if (info.ended && !info.status.ok()) return info.status;
    if (info.ended) return info;
    if (!PauseBeforePoll(executor, wait, &backoff)) {
      return wait.Failure().WithContext("waited for job " + std::to_string(job) + ", to " +
                                        info.spec.ToString() + ", which goes on");
    }
  }
}

}  // namespace tamis
