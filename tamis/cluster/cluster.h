// The interface of a place that holds tables in regions, as a coordinator needs it: a Cluster that
// knows which tables and regions there are and where, and the stubs of its region servers
// (region_server.h). Implemented by the embedded cluster (tamis/rocks) and by HBase
// (tamis/hbase_cluster). Calls are asynchronous, may fail, and may be answered late or never (the
// caller keeps its own deadline). Calls that change a cluster are in cluster_admin.h.
//
// Names. A table is named by its name, in calls and in messages to people; its id names it on the
// wire, and tells it from another table that has its name later. A region is named by its RegionId;
// the cluster's own name of it is shown to people beside it. A server is named by its name, which
// goes on when it dies and is started again; its start code tells these lives apart.
//
// Epochs. An epoch tells two openings of one region at one life of one server apart, and nothing
// else: those of other regions, of other servers or of other lives cannot be compared with it. (The
// embedded cluster knows more of its own; nobody outside of tamis/rocks may.)
//
// Threads: all calls may be made from any thread; callbacks come on any thread, sometimes before
// the call returns.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/region_id.h"
#include "tamis/table/key_range.h"
#include "tamis/table/schema.h"

namespace tamis {

template <class T>
using Callback = std::function<void(Result<T>)>;
using DoneCallback = std::function<void(Status)>;

class RegionServer;

struct RegionInfo {
  RegionId id;
  std::string name;  // the cluster's own, for people
  uint64_t epoch = 0;
  uint32_t table_id = 0;
  std::string start;        // row key, inclusive
  std::string end;          // exclusive; empty = to the end of the table
  std::string server;       // empty while the region is not assigned
  uint64_t size_bytes = 0;  // rough

  bool Contains(std::string_view key) const { return key >= start && (end.empty() || key < end); }
  KeyRange keys() const { return {start, end}; }
};

struct ServerInfo {
  enum class State { kLive, kPaused, kDead };
  std::string name;
  State state = State::kLive;
  uint64_t regions = 0;
};

class Cluster {
 public:
  virtual ~Cluster() = default;

  // The server's stub. Kept valid when the server dies: its calls then fail with kUnavailable.
  virtual std::shared_ptr<RegionServer> Server(const std::string& name) = 0;
  virtual void ListServers(Callback<std::vector<ServerInfo>> done) = 0;
  // The regions of the table that hold keys of `stale`, or all of them when it is empty, in key
  // order. `stale` names the keys that the caller does not know or whose server refused it; the
  // cluster drops its own cached locations of those keys, and only those. The list may be out of
  // date when it arrives. kNotFound when there is no such table.
  virtual void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                           Callback<std::vector<RegionInfo>> done) = 0;
  virtual void ListTables(Callback<std::vector<TableSchema>> done) = 0;
  virtual void GetTable(const std::string& name, Callback<TableSchema> done) = 0;
};

}  // namespace tamis
