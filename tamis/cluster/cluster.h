// The interface of a place that holds tables in regions: a RegionServer that writes, searches and
// feeds filters, and a Cluster that knows which regions there are and where. Implemented by the
// embedded cluster (tamis/rocks), and made for a network: calls are asynchronous, may fail, may be
// answered late or never (the caller keeps its own deadline).
//
// Threads: all calls may be made from any thread; callbacks come on any thread, sometimes before
// the call returns.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/table/schema.h"

namespace tamis {

using SchemaPtr = std::shared_ptr<const TableSchema>;

template <class T>
using Callback = std::function<void(Result<T>)>;
using DoneCallback = std::function<void(Status)>;

class RegionServer {
 public:
  virtual ~RegionServer() = default;

  virtual void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) = 0;
  virtual void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) = 0;
  virtual void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) = 0;
};

struct RegionInfo {
  uint64_t id = 0;
  uint64_t epoch = 0;
  uint32_t table_id = 0;
  std::string start;        // row key, inclusive
  std::string end;          // exclusive; empty = to the end of the table
  std::string server;       // empty while the region is not assigned
  uint64_t size_bytes = 0;  // rough

  bool Contains(std::string_view key) const { return key >= start && (end.empty() || key < end); }
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
  // In key order; a table's regions tile it, but what is listed may be old when it arrives.
  virtual void ListRegions(uint32_t table_id, Callback<std::vector<RegionInfo>> done) = 0;

  virtual void ListTables(Callback<std::vector<TableSchema>> done) = 0;
  virtual void GetTable(const std::string& name, Callback<TableSchema> done) = 0;
  // Ids and version are given by the cluster. kAlreadyExists when the name is taken.
  virtual void CreateTable(TableSchema schema, Callback<TableSchema> done) = 0;
  virtual void DropTable(const std::string& name, DoneCallback done) = 0;
  virtual void AddColumn(const std::string& table, Column column, Callback<TableSchema> done) = 0;
  // Online. Done when puts maintain the index; regions complete it in the background, and until one
  // has, a search by the index scans that region.
  virtual void CreateIndex(const std::string& table, IndexSpec index,
                           Callback<TableSchema> done) = 0;
  virtual void DropIndex(const std::string& table, const std::string& index,
                         Callback<TableSchema> done) = 0;
  // Makes the entries and filters of the index (all indexes of the table when empty) agree with the
  // rows, whatever they were, while the table is in use. Done when they do, for coordinators too.
  virtual void RebuildIndex(const std::string& table, const std::string& index,
                            DoneCallback done) = 0;

  // Splits the region at `key`, or near its middle when empty.
  virtual void SplitRegion(uint64_t region_id, std::string key, DoneCallback done) = 0;
  // The region and its right neighbour become one.
  virtual void MergeRegion(uint64_t region_id, DoneCallback done) = 0;
  virtual void MoveRegion(uint64_t region_id, const std::string& server, DoneCallback done) = 0;
  virtual void Balance(Callback<uint64_t> done) = 0;  // how many regions were moved
};

}  // namespace tamis
