// The embedded cluster as a ClusterUnderTest: on real threads in a directory of its own, and on one
// thread with a virtual clock.
#pragma once

#include "tests/cluster/cluster_under_test.h"

namespace tamis {

ClusterKind EmbeddedKind();
ClusterKind EmbeddedVirtualKind();

}  // namespace tamis
