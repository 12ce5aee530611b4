// RandomCluster: a whole cluster with two coordinators on one thread and a virtual clock, driven by
// a seed: writes and searches of every kind, some through SQL, several writers of one row, while
// regions split, merge and move, servers die and pause, polls are lost, late and reordered,
// coordinators restart, clocks drift and jump, indexes, columns and tables come and go, the store
// compacts, its writes fail and the process crashes. Every acknowledged row must be found by key
// and by every index, and nothing else returned; at no moment from its acknowledgement on may any
// coordinator leave it out. The seed says how coarse the filters are, how long the steps of
// background jobs, and the like.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tamis/cluster/faults.h"

namespace tamis {

struct RandomClusterOptions {
  uint64_t seed = 1;
  uint64_t operations = 10'000;
  Faults faults;
  // Each node's clock is off by a rate drawn up to this, in thousandths. The margins of the leases
  // allow for clocks that differ by 30, and no more.
  int clock_drift = 15;
  bool sql = true;  // a share of the operations goes through SQL
  bool verbose = false;
};

struct RandomClusterResult {
  std::optional<std::string> failure;  // the fault, and its place
  uint64_t operations = 0;             // done until then
  std::map<std::string, uint64_t> counts;
};

RandomClusterResult RunRandomCluster(const RandomClusterOptions& options);

}  // namespace tamis
