// A real HBase with our coprocessor, as a kind of cluster: one for all tests of the program, with a
// namespace for each that opens one. Its servers are processes that can be killed and paused.
#pragma once

#include "tests/cluster/cluster_under_test.h"

namespace tamis {

ClusterKind HBaseKind();

}  // namespace tamis
