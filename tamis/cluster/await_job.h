// AwaitJob: starts a job and polls it until it has ended.
#pragma once

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster_admin.h"

namespace tamis {

// Returns the job if it has ended without an error; else the error of the job, or of a call to the
// cluster. If the wait is over before the job ends, the job goes on. Blocks; polls less and less
// often, down to once a second.
Result<JobInfo> AwaitJob(ClusterAdmin* admin, Executor* executor, const Wait& wait, JobSpec spec);

}  // namespace tamis
