// Where the regions of a table are, as text, for the report of a failed test.
#pragma once

#include <string>

#include "tamis/rocks/rocks_cluster.h"
#include "tests/cluster/answer.h"

namespace tamis {

// With a row: which region holds it, and which of its entries are there.
std::string Layout(RocksCluster& cluster, const TableSchema& schema, const RowState& row = {});

}  // namespace tamis
