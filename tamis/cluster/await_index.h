// AwaitIndex: waits until all regions of a table have completed an index.
#pragma once

#include <functional>
#include <string>

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster_admin.h"

namespace tamis {

// Returns the progress of the index once it is complete in each region; regions that split
// afterwards may build it again. The error of a call to the cluster (kNotFound if the index is
// dropped meanwhile) or of `wait` ends it, and so does a region that keeps failing (IndexWait has
// the rule), with the code of its failure; the servers go on building. Blocks; polls less and less
// often, down to once a second.
//
// `show`, unless it is empty, is called when a region's failure is found and when it has changed,
// not at each poll.
Result<IndexProgress> AwaitIndex(ClusterAdmin* admin, Executor* executor, const Wait& wait,
                                 const std::string& table, const std::string& index,
                                 const std::function<void(const IndexProgress&)>& show = {});

}  // namespace tamis
