// IndexReports: makes the progress of an index from the replies of the region servers, which report
// the state of their regions.
//
// Threads: none; a value of one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/hbase/region.h"

namespace tamis {

class IndexReports {
 public:
  // `regions`: those of the table in hbase:meta, in key order.
  explicit IndexReports(std::vector<hbase::RegionPtr> regions) : regions_(std::move(regions)) {}

  // The servers to ask.
  std::vector<std::string> Servers() const;
  void Add(const std::string& server, const Result<pb::StatusReply>& reply);
  // kDataLoss when a region has no name that HBase would give it.
  Result<IndexProgress> Progress(uint32_t index_id) const;

 private:
  struct Report {
    Status failure;                                // why the server did not answer
    std::map<uint64_t, pb::RegionStatus> regions;  // by id
  };
  // The error says why the index is not known to be complete in the region.
  Result<const pb::RegionStatus*> Find(const std::string& server, RegionId id) const;

  const std::vector<hbase::RegionPtr> regions_;
  std::map<std::string, Report> reports_;  // by server
};

}  // namespace tamis
