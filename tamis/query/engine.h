// Engine: the coordinator. It keeps the filters of all regions by polling the region servers, sends
// each search only to the regions that can hold an answer, and proves that nothing was left out.
//
// Memory: a call that lacks memory ends with kResourceExhausted ("memory is short"), except that a
// write which may have been carried out ends with kDeadlineExceeded, as always. The engine stays
// usable. Members that return no Result may throw std::bad_alloc. Below an embedded cluster,
// RocksDB ends the process when its own threads find no memory for half a minute.
//
// Threads: all members may be called from any thread. The blocking forms must not be called from an
// executor's task.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/query/aggregate.h"
#include "tamis/query/explain.h"
#include "tamis/query/row_group.h"
#include "tamis/query/search_options.h"
#include "tamis/query/write.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class Cluster;
class Coordinator;  // coordinator.h, which is not installed
class FoundRows;
struct RoutingTerm;

// The rows of one search, fetched page by page. Not thread-safe. Destroying it ends the search.
class RowStream {
 public:
  ~RowStream();
  RowStream(RowStream&&) noexcept;
  RowStream& operator=(RowStream&&) noexcept;

  // The next row, nullopt at the end. After an error: the same error.
  Result<std::optional<Row>> Next();
  // The same, with a count, where SearchOptions::groups allows it. A call takes a whole group.
  Result<std::optional<RowGroup>> NextGroup();
  // From now on the servers are asked for rows; groups that were asked for still come.
  void StopGrouping();
  // Complete once Next() has returned nullopt.
  const Explain& explain() const;

 private:
  friend class Engine;
  explicit RowStream(std::unique_ptr<FoundRows> rows);
  std::unique_ptr<FoundRows> rows_;
};

struct Faults;  // cluster/faults.h, which is not installed

class Engine {
 public:
  struct Options {
    Duration poll_wait = std::chrono::milliseconds(300);
    Duration poll_margin = std::chrono::seconds(1);  // a reply may come so much after poll_wait
    Duration lease_margin = std::chrono::milliseconds(20);
    Duration request_timeout = std::chrono::seconds(5);
    Duration write_timeout = std::chrono::seconds(30);
    size_t request_ranges = 8;   // ranges of one search request
    int requests_in_flight = 4;  // requests of one search, to one server
    // Bound of the filters that are kept here. Searches ask all regions whose filters do not fit.
    uint64_t max_filter_bytes = uint64_t{16} << 30;
    uint64_t seed = 0;    // the seed of the coordinator's number; 0 = drawn from the system
    bool polling = true;  // false: keeps no filters; each search asks all regions
    std::shared_ptr<const Faults> faults = nullptr;  // for tests of Tamis itself
  };

  // The cluster and the executor must outlive the engine.
  Engine(Cluster* cluster, Executor* executor, Options options);
  // An engine that hands its calls to this coordinator, such as that of a server (tamis/remote).
  explicit Engine(std::unique_ptr<Coordinator> coordinator);
  ~Engine();  // ends polling; REQUIRES: no call is under way
  // Ends polling and tells the region servers, so that no put waits for this coordinator's leases
  // any longer; waits at most `patience` for their replies. Later searches ask all regions. Called
  // while the executor runs.
  void Leave(Duration patience);

  Cluster& cluster();
  Executor& executor();

  // The table's schema, from a cache that is refreshed when a server says that it is old.
  Result<SchemaPtr> Table(const std::string& name);
  void ForgetTable(const std::string& name);

  RowStream Search(SchemaPtr schema, SearchOptions options);
  // Counts and totals of groups of rows (aggregate.h).
  Result<Aggregates> Aggregate(SchemaPtr schema, AggregateOptions options);
  Result<std::optional<Row>> Get(SchemaPtr schema, const Row& key_row);

  // Returns one status for each write, in order. Each row is written atomically, the batch is not.
  // kDeadlineExceeded: the write may have been carried out. kCancelled: it was not carried out,
  // since `cancelled` was set. Any thread or a signal handler may set `cancelled`.
  std::vector<Status> Apply(SchemaPtr schema, std::vector<Write> writes,
                            const std::atomic<bool>* cancelled = nullptr);

  // Waits until the filters of all regions of the table are here, except those that find no room;
  // false at the timeout. Commands and tests call it before their first query, so that the query is
  // sent only to the regions that may hold an answer.
  bool WaitUntilRouted(const TableSchema& schema, Duration timeout);

  // The state of this coordinator's copies of the regions' filters.
  struct Knowledge {
    uint64_t servers = 0;
    uint64_t regions = 0;
    // Pairs of region and index whose bits are not here: searches by the index ask the region.
    uint64_t indexes_missing = 0;
    uint64_t indexes_left_out = 0;  // the pairs among these whose bits find no room in memory
    uint64_t filters_coarse = 0;    // filters that keep fewer bits than they have, for want of room
    uint64_t filter_bytes = 0;
    uint64_t max_filter_bytes = 0;
    uint64_t servers_without_lease = 0;  // now: their regions are asked by each search
  };
  Knowledge knowledge() const;

  // The work of this coordinator since its start.
  struct Totals {
    uint64_t polls = 0;         // polls that servers have answered
    uint64_t polls_failed = 0;  // or not answered in time
    uint64_t events = 0;  // events of servers, such as changed bits of filters, that were taken in
    uint64_t writes = 0;  // that were carried out
    uint64_t writes_refused = 0;
    uint64_t writes_unknown = 0;  // that may have been carried out (kDeadlineExceeded)
    uint64_t batches = 0;         // calls of Apply
    Duration batch_time{};        // sum of their times, with the waits for coordinators
  };
  Totals totals() const;

  // The numbers of the table's regions whose filters are here and may be used. The others are asked
  // by each search.
  std::vector<uint64_t> RoutedRegions(const TableSchema& schema) const;

  // True if a search with this condition would now skip the region that contains the row with this
  // key. Tests use it to check that no search skips a matching row.
  bool LeavesOut(uint32_t table_id, const RoutingTerm& asked, const std::string& key) const;

 private:
  const std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace tamis
