// Which server has a row: what hbase:meta said, kept, and asked again only for keys that turned out
// to be wrong.
//
// A table is not read as a whole but where rows are asked for. One refresh of a table runs at a
// time, and all who miss something wait for it. When a server no longer has a region, what is known
// of it is dropped, or corrected when the server said where it went. When hbase:meta still tells
// the same a moment later (it names a dead server until its regions are open elsewhere), it is
// asked again only after a pause, which grows up to a second: for all callers together, however
// many there are.
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

  // The region that holds the row, when it is known; for who asks often: nobody has to wait.
  RegionPtr Known(std::string_view table, std::string_view row) const;
  // The region that holds the row. kNotFound when there is no such table.
  Task<Result<RegionPtr>> Holding(std::string table, std::string row, Deadline deadline);
  // The region that holds the rows just before the row; of an empty row, the last region.
  Task<Result<RegionPtr>> Before(std::string table, std::string row, Deadline deadline);
  // All regions, in order, from hbase:meta; some may be open nowhere at the moment (no server).
  Task<Result<std::vector<RegionPtr>>> All(std::string table, Deadline deadline);

  // The regions that hold rows from `start` to before `end` (empty: to the end), likewise. Empty
  // when the table does not exist.
  Task<Result<std::vector<RegionPtr>>> Between(std::string table, std::string start,
                                               std::string end, Deadline deadline);

  // Reports that the server does not answer or no longer has the region. If many calls of one
  // look-up report it, the first one counts.
  void Suspect(const RegionPtr& region);
  // The server said why; a hint is taken unless it is older than what is known.
  void Refused(const RegionPtr& region, const Exception& exception);

  struct Counts {
    uint64_t meta_lookups = 0;      // single keys read from hbase:meta
    uint64_t meta_table_scans = 0;  // whole tables
    uint64_t registry_lookups = 0;  // of hbase:meta itself
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
