// KnownRegions: a cache of the servers of the regions of indexed tables. A message reaches a server
// through any region that the server has.
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
  // Replaces the entries of this range of the table by those read from hbase:meta.
  void Learn(const std::string& table, const KeyRange& range,
             const std::vector<hbase::RegionPtr>& regions);
  // Drops the region, because its server does not have it. Returns false if the entry has changed
  // meanwhile.
  bool Forget(const hbase::RegionPtr& region);
  // Drops all entries of the table.
  void ForgetTable(const std::string& table);

  // Returns up to `most` regions at the server; those with the ids in `first` come first.
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
