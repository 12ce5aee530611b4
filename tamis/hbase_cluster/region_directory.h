// RegionDirectory: the regions of indexed tables, read from hbase:meta. Stubs of servers learn from
// each read where regions are (KnownRegions).
//
// Threads: safe. Calls block.
#pragma once

#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/region_id.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_cluster.h"

namespace tamis {

class RegionDirectory {
 public:
  // Both arguments must outlive this object.
  RegionDirectory(HBaseCluster* cluster, hbase::Client* client)
      : cluster_(cluster), client_(client) {}

  Result<std::vector<hbase::RegionPtr>> Of(const std::string& hbase_table);
  Result<std::vector<hbase::RegionPtr>> OfAllTables();
  Result<hbase::Region> Find(RegionId id);

 private:
  HBaseCluster* const cluster_;
  hbase::Client* const client_;
};

}  // namespace tamis
