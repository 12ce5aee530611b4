// KnownRegions: which regions of indexed tables are at which servers, as far as it was heard: by
// these the servers are reached, since a message travels on any region that its server has.
//
// Threads: safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tamis/cluster/region_id.h"
#include "tamis/hbase/region.h"
#include "tamis/table/key_range.h"

namespace tamis {

class KnownRegions {
 public:
  // Learns the regions that hbase:meta has in this range of the table.
  void Learn(const std::string& table, const KeyRange& range,
             const std::vector<hbase::RegionPtr>& regions);
  // Its server says that it is not there. False when something else is known by now.
  bool Forget(const hbase::RegionPtr& region);
  // The table is no more.
  void ForgetTable(const std::string& table);

  // The regions at the server, the ones with these ids first; no more than `most`.
  std::vector<hbase::RegionPtr> At(const std::string& server, const std::vector<RegionId>& first,
                                   size_t most) const;
  uint64_t CountAt(const std::string& server) const;
  hbase::RegionPtr Find(RegionId id) const;  // or nullptr

 private:
  void Erase(const hbase::RegionPtr& region);

  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, hbase::RegionPtr>> tables_;  // by start key
  std::map<std::string, std::map<RegionId, hbase::RegionPtr>> servers_;
  std::map<RegionId, hbase::RegionPtr> ids_;
};

}  // namespace tamis
