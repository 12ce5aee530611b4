// AwaitJob: starts a job and asks for it until it has ended.
#pragma once

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster_admin.h"

namespace tamis {

// The job once it has ended well; its error when it did not, or that of a call. It goes on when the
// wait is over before. Blocks; asks less and less often, up to once a second.
Result<JobInfo> AwaitJob(ClusterAdmin* admin, Executor* executor, const Wait& wait, JobSpec spec);

}  // namespace tamis
