// HBaseOutages: outages of a real HBase. Servers are killed, paused for less or for more than their
// session lasts, cut off from the master or from ZooKeeper; these two go away. A server that is
// down at the end of an outage is started again; one that ends only later, at the end of the next
// outage.
//
// The cluster must have been started with --cuts, else the test fails, and with --hdfs: on the
// local file system a server that has slept for too long writes into a log that is not its own any
// more, and HBase loses rows.
#pragma once

#include <vector>

#include "tests/cluster/threaded_cluster.h"
#include "tests/hbase/local_hbase.h"

namespace tamis {

// Where the master dies while a region closes, the server tells it so less and less often: the
// region is nowhere for minutes.
std::vector<Outage> HBaseOutages(const LocalHBase& hbase);

}  // namespace tamis
