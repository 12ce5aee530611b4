// The interface of a place that holds tables in regions, as a coordinator needs it: a Cluster that
// knows which tables and regions there are and where, and the stubs of its region servers
// (region_server.h). Implemented by the embedded cluster (tamis/rocks), for HBase
// (tamis/hbase_cluster) and for a store behind a server (tamis/remote). Calls are asynchronous and
// may fail. The answer may come late or never, so the caller keeps a deadline of its own. Calls
// that change a cluster are in cluster_admin.h.
//
// Names. Calls and messages to users identify a table by its name. Requests to servers identify it
// by its id; a later table with the same name has another id. Calls identify a region by its
// RegionId; users also see the cluster's own name of the region. Calls identify a server by its
// name, which stays the same when the server dies and is started again; the start code
// distinguishes these lives.
//
// Epochs. An epoch distinguishes two openings of one region within one life of one server. Epochs
// of different regions, servers or lives must not be compared. (In the embedded cluster epochs have
// an order, too, but only code in tamis/rocks may use it.)
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
  // Why the region is open nowhere, if that lasts until the user acts. Ok in all other cases.
  Status unserved = {};

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

  // The server's stub. It stays valid when the server dies; its calls then fail with kUnavailable.
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
