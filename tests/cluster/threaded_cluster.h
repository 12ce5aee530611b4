// RunThreadedCluster: the randomized cluster test on real threads and a real store: clients write
// rows of their own and search for those of all, on several coordinators, while other threads
// split, merge and move regions, kill, pause and resume servers, create, drop and rebuild indexes,
// compact, and start and end coordinators. Which race is run is the machine's choice, not the
// seed's; what is drawn is the seed's.
//
// A search must return every row that it matches in all states that the row may have had since the
// search began, and nothing that was never written. At the end `check` must be clean.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tests/cluster/random_cluster.h"

namespace tamis {

struct ThreadedClusterOptions {
  uint64_t seed = 1;
  uint64_t operations = 4000;  // writes and searches of all clients together
  int clients = 4;
  Faults faults;
  std::filesystem::path directory;  // of the store; made, and removed at the end
};

RandomClusterResult RunThreadedCluster(const ThreadedClusterOptions& options);

}  // namespace tamis
