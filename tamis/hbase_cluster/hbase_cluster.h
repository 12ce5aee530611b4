// HBaseCluster: the indexed tables of one namespace of an HBase cluster whose servers load the
// coprocessor of Tamis (docs/HBASE.md).
//
// An HBase table is indexed if its description holds a schema. The cluster knows it by the schema's
// name, which for a table that Tamis created is also its name in HBase; copies of a table have no
// name (table_names.h). Regions come from hbase:meta; stale key ranges are read again one by one.
// The master is needed only to look up and list tables, and to list servers and region sizes.
//
// Threads: safe. Callbacks run on the executor. REQUIRES: no task of the executor uses the cluster
// when it is destroyed.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/base/backoff.h"
#include "tamis/base/thread_executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/cluster/hidden_tables.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_region_server.h"
#include "tamis/hbase_cluster/hbase_tables.h"
#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/hbase_cluster/region_sizes.h"

namespace tamis {

class HBaseCluster : public Cluster, public HiddenTables {
 public:
  struct Options {
    hbase::ClientOptions client;
    std::string name_space = "default";
    // How long a table's description is trusted; a region list uses it to find the table's HBase
    // name.
    Duration description_age = std::chrono::seconds(1);
    // How long a call waits for the master when a cached answer suffices.
    Duration patience = std::chrono::seconds(1);
    // How long the sizes of regions are trusted.
    Duration size_age = std::chrono::seconds(10);
    // Pauses between searches for regions on servers without a known region: they grow from the
    // first value to the last.
    Duration first_look = std::chrono::seconds(1);
    Duration last_look = std::chrono::seconds(30);
  };

  // Makes no call yet. Returns kInvalidArgument for addresses that cannot be parsed.
  static Result<std::unique_ptr<HBaseCluster>> Open(Options options, Executor* executor);
  ~HBaseCluster() override;
  // Finds the reason why a client gets no answer in time: tries each address for as long as `time`
  // allows. Use it because the cluster itself retries for longer than a person waits, unless the
  // addresses are wrong (hbase/registry.h), and does not report its failed tries. Blocks.
  static Status WhyNoAnswer(hbase::ClientOptions client, std::chrono::milliseconds time);

  std::shared_ptr<RegionServer> Server(const std::string& name) override { return Stub(name); }
  // Names are "HOST:PORT". Dead servers that have not been restarted are listed, too.
  void ListServers(Callback<std::vector<ServerInfo>> done) override;
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override;
  void ListTables(Callback<std::vector<TableSchema>> done) override;
  void GetTable(const std::string& name, Callback<TableSchema> done) override;
  void ListHiddenTables(Callback<std::vector<std::string>> done) override;

  // For administration.
  std::shared_ptr<HBaseRegionServer> Stub(const std::string& name);
  HBaseTables& tables() { return tables_; }
  KnownRegions& known_regions() { return link_->regions; }
  // Drops what the cluster remembers of the table, because it is outdated.
  void Invalidate(const std::string& name);

 private:
  HBaseCluster(Options options, Executor* executor, std::unique_ptr<hbase::Client> client);

  // Combines identical requests that run at the same time into one.
  template <class T>
  struct Shared {
    bool asked = false;
    std::vector<Callback<T>> waiting;
  };

  template <class T>
  void Ask(Shared<T>* shared, Callback<T> done, std::function<Result<T>()> ask);
  void FindKnown(const std::string& name, Callback<HBaseTables::Known> done);
  void AskTable(const std::string& name, Callback<IndexedTable> done);
  void ListKnown(const HBaseTables::Known& table, std::vector<KeyRange> stale,
                 Callback<std::vector<RegionInfo>> done);
  Result<std::vector<ServerInfo>> AskServers();
  // Returns true if it searched and the search ended in time. Blocks for `patience` at most.
  bool LookForRegions(const std::vector<ServerInfo>& servers);
  void LearnRegions();  // the regions of all tables; ends a search
  void LookAt(const hbase::RegionPtr& gone);

  const Options options_;
  Executor* const executor_;
  const std::shared_ptr<ServerLink> link_;

  HBaseTables tables_;
  RegionSizes sizes_;

  std::mutex mutex_;
  std::map<std::string, Shared<IndexedTable>> finds_;
  Shared<std::vector<TableSchema>> lists_;
  Shared<std::vector<std::string>> hidden_;
  Shared<std::vector<ServerInfo>> servers_;
  // State of the searches for regions on servers without a known region.
  bool looking_ = false;
  Time next_look_{};
  Backoff pauses_;
  std::vector<std::string> bare_;  // servers without a known region, at the last look

  // Its callbacks use all members above, until it is destroyed.
  const std::unique_ptr<hbase::Client> client_;
  // Runs the calls that wait for the master.
  ThreadExecutor waiters_;
};

}  // namespace tamis
