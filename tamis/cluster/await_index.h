// AwaitIndex: waits until all regions of a table have completed an index.
#pragma once

#include <string>

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster_admin.h"

namespace tamis {

// Returns the progress of the index once it is complete in each region; regions that split
// afterwards may build it again. The error of a call to the cluster (kNotFound if the index is
// dropped meanwhile) or of `wait` ends it; regions go on building. Blocks; polls less and less
// often, down to once a second.
Result<IndexProgress> AwaitIndex(ClusterAdmin* admin, Executor* executor, const Wait& wait,
                                 const std::string& table, const std::string& index);

}  // namespace tamis
