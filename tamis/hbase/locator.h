// The cache of region locations: it keeps rows of hbase:meta and reads again only keys whose
// entries proved wrong.
//
// It reads only the parts of a table that are needed. One refresh of a table runs at a time, and
// all callers that miss an entry wait for it. When a server no longer has a region, its entry is
// dropped, or corrected if the server named the new server. If hbase:meta still returns the same
// location (it names a dead server until the regions are open elsewhere), it is read again only
// after a pause that grows up to one second. All callers share that pause.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/exception.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/task.h"

namespace tamis::hbase {

class Session;

class Locator {
 public:
  explicit Locator(Session& session) : session_(session) {}

  // Returns the region that holds the row if it is in the cache. Does not suspend.
  RegionPtr Known(std::string_view table, std::string_view row) const;
  // Returns the region that holds the row; kNotFound if the table does not exist.
  Task<Result<RegionPtr>> Holding(std::string table, std::string row, Deadline deadline);
  // Returns the region that holds the rows just before `row`; the last region if `row` is empty.
  Task<Result<RegionPtr>> Before(std::string table, std::string row, Deadline deadline);
  // Reads all regions from hbase:meta, in order. A region that is open nowhere has no server.
  Task<Result<std::vector<RegionPtr>>> All(std::string table, Deadline deadline);

  // Likewise, the regions that hold rows in [start, end); an empty `end` is no bound. Returns none
  // if the table does not exist.
  Task<Result<std::vector<RegionPtr>>> Between(std::string table, std::string start,
                                               std::string end, Deadline deadline);

  // Reports that the server does not answer or no longer has the region. If several callers report
  // the same cache entry, only the first report counts.
  void Suspect(const RegionPtr& region);
  // Reports the server's exception. A hint to the new server is used unless it is older than the
  // entry.
  void Refused(const RegionPtr& region, const Exception& exception);

  struct Counts {
    uint64_t meta_lookups = 0;      // single keys read from hbase:meta
    uint64_t meta_table_scans = 0;  // whole tables
    uint64_t registry_lookups = 0;  // look-ups of the location of hbase:meta itself
    uint64_t hints_taken = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Doubt {
    std::string end;
    ServerName server;
    int64_t open_sequence = -1;
    int failures = 0;
    Deadline not_before;
  };
  struct Table {
    explicit Table(Session& session);
    std::map<std::string, RegionPtr, std::less<>> regions;  // by start key
    std::map<std::string, Doubt, std::less<>> doubts;       // by start key
    bool refreshing = false;
    Waiters waiters;
  };

  Task<Result<RegionPtr>> Find(std::string table, std::string row, bool before, Deadline deadline);
  Task<Result<std::vector<RegionPtr>>> ReadRegions(std::string table, std::string from_key,
                                                   std::string to_key, Deadline deadline);
  Task<Status> Refresh(Table& table, std::string name, std::string row, bool before,
                       Deadline deadline);
  Table& TableOf(const std::string& name);
  RegionPtr Known(const Table& table, std::string_view row, bool before) const;
  Deadline NotBefore(const Table& table, std::string_view row, bool before) const;
  static void Insert(Table& table, RegionPtr region);
  void Doubted(Table& table, const Region& region);

  Session& session_;
  std::map<std::string, std::unique_ptr<Table>, std::less<>> tables_;
  Counts counts_;
};

}  // namespace tamis::hbase
