// RunThreadedCluster: the randomized cluster test on real threads and a cluster of any kind:
// clients write and search, on several coordinators, while other threads split, merge and move
// regions, kill, pause and resume servers, create, drop and rebuild indexes, compact, and start and
// end coordinators. Most rows have one writer, whose conditions must be judged as it expects; a few
// have all of them at a time. Which race is run is the machine's choice, not the seed's; what is
// drawn is the seed's.
//
// A search must return every row that it matches in all states that the row may have had since the
// search began, and nothing that was never written (WriteLog). At the end `check` must be clean.
#pragma once

#include <cstdint>

#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/random_cluster.h"

namespace tamis {

struct ThreadedClusterOptions {
  uint64_t seed = 1;
  uint64_t operations = 4000;  // writes and searches of all clients together
  int clients = 4;
  Faults faults;
};

// REQUIRES: the kind has no virtual clock.
RandomClusterResult RunThreadedCluster(const ClusterKind& kind,
                                       const ThreadedClusterOptions& options);

}  // namespace tamis
