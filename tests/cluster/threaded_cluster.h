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
#include <functional>
#include <string>
#include <vector>

#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/random_cluster.h"

namespace tamis {

// An event that harms a cluster from outside: it begins, lasts, and is undone, which may take its
// time.
struct Outage {
  std::string name;  // the name by which it is counted
  Duration lasts{};
  std::function<bool()> begin;  // false: it could not
  std::function<void()> end;    // then, too
};

struct ThreadedClusterOptions {
  uint64_t seed = 1;
  uint64_t operations = 4000;  // writes and searches of all clients together
  int clients = 4;
  Faults faults;
  // Outages: one at a time, each as often as the others. If there are any, servers die only by
  // these; during an outage the master may be away, so tables and regions cannot be listed.
  std::vector<Outage> outages = {};
  // How a coordinator in a process of its own is started, but for the last argument, the store: it
  // sleeps, for longer than its leases too, and is killed, while clients ask it. Empty: there is
  // none.
  std::vector<std::string> coordinator = {};
  // How HBase's own client is started in a process of its own, but for the last argument, the table
  // (plain_client.h): it writes rows of its own, and reads them. Empty: there is none.
  std::vector<std::string> plain_client = {};
  // With a coordinator whose network is cut now and then, where the kind has one.
  bool cut_off = false;
};

// REQUIRES: the kind has no virtual clock.
RandomClusterResult RunThreadedCluster(const ClusterKind& kind,
                                       const ThreadedClusterOptions& options);

}  // namespace tamis
