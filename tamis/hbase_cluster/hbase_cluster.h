// HBaseCluster: the indexed tables of one namespace of an HBase cluster whose servers load our
// coprocessor (docs/HBASE.md).
//
// A table of HBase is one of ours when its description has a schema. It is known here by the
// schema's name, which for a table that Tamis made is its name in HBase, too; copies of a table
// have no name (table_names.h). A table that was found is followed by its HBase name for as long as
// that has the name. Regions are those of hbase:meta; what is stale is read anew there, key range
// by key range. Which server is master, and whether there is one, matters only to what asks for
// tables and servers.
//
// Threads: safe. Answers come on the executor. REQUIRES: no task of the executor's uses the cluster
// when it ends.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/backoff.h"
#include "tamis/base/thread_executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/hbase_region_server.h"
#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/hbase_cluster/table_names.h"

namespace tamis {

class HBaseCluster : public Cluster {
 public:
  struct Options {
    hbase::ClientOptions client;
    std::string name_space = "default";
    // So long what a table's description says is believed; a region list names the table by it.
    Duration description_age = std::chrono::seconds(1);
    // So long the master is waited for where what it said last will do.
    Duration patience = std::chrono::seconds(1);
    // So long the sizes of regions are believed.
    Duration size_age = std::chrono::seconds(10);
    // Between looks for regions at servers where none is known: from the first to the last.
    Duration first_look = std::chrono::seconds(1);
    Duration last_look = std::chrono::seconds(30);
  };

  // Asks nobody yet. kInvalidArgument for addresses that are none.
  static Result<std::unique_ptr<HBaseCluster>> Open(Options options, Executor* executor);
  ~HBaseCluster() override;
  // Finds out why no answer arrives: asks each address for as long as `time` allows. A cluster goes
  // on trying for longer than a person waits, and does not report the causes. Blocks.
  static Status WhyNoAnswer(hbase::ClientOptions client, std::chrono::milliseconds time);

  std::shared_ptr<RegionServer> Server(const std::string& name) override { return Stub(name); }
  // Servers by "HOST:PORT". Servers that have died and did not come back are listed, too.
  void ListServers(Callback<std::vector<ServerInfo>> done) override;
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override;
  void ListTables(Callback<std::vector<TableSchema>> done) override;
  void GetTable(const std::string& name, Callback<TableSchema> done) override;

  // For the administrator. Find, Tables and Names block; not to be called from a task of the
  // executor.
  std::shared_ptr<HBaseRegionServer> Stub(const std::string& name);
  Result<IndexedTable> Find(const std::string& name);
  Result<std::vector<IndexedTable>> Tables();  // those that have a name
  Result<TableNames> Names();
  const std::string& name_space() const { return options_.name_space; }
  KnownRegions& known_regions() { return link_->regions; }
  // Forgets the remembered description of the table.
  void Invalidate(const std::string& name);

 private:
  HBaseCluster(Options options, Executor* executor, std::unique_ptr<hbase::Client> client);

  // Questions that many ask at one time are asked once.
  template <class T>
  struct Shared {
    bool asked = false;
    std::vector<Callback<T>> waiting;
  };
  struct Known {
    std::string hbase_name;
    uint32_t table_id = 0;
    Time heard{};
  };

  template <class T>
  void Ask(Shared<T>* shared, Callback<T> done, std::function<Result<T>()> ask);
  void FindKnown(const std::string& name, Callback<Known> done);
  void AskTable(const std::string& name, Callback<IndexedTable> done);
  Known KnownOf(const IndexedTable& table) const;
  // The table that had the name when it was last heard of, if it has it still.
  Result<std::optional<IndexedTable>> FindAgain(const std::string& name);
  void Remember(const std::string& name, const Result<IndexedTable>& table);
  void ListKnown(const Known& table, std::vector<KeyRange> stale,
                 Callback<std::vector<RegionInfo>> done);
  // Asks for the sizes of regions where they are old; the first time `then` comes behind the
  // answer.
  void LearnSizes(std::function<void()> then);
  uint64_t SizeOf(const std::string& encoded);
  Result<std::vector<ServerInfo>> AskServers();
  // Whether it looked. Blocks.
  bool LookForRegions(const std::vector<ServerInfo>& servers);
  void LookAt(const hbase::RegionPtr& gone);

  const Options options_;
  Executor* const executor_;
  const std::shared_ptr<ServerLink> link_;

  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by the schema's name
  std::map<std::string, Shared<IndexedTable>> finds_;
  Shared<std::vector<TableSchema>> tables_;
  Shared<std::vector<ServerInfo>> servers_;
  std::map<std::string, uint64_t> sizes_;  // of regions, by their encoded names
  std::optional<Time> sizes_asked_;
  bool sizing_ = false;
  // Looks for regions where none is known.
  bool looking_ = false;
  Time next_look_{};
  Backoff pauses_;
  std::vector<std::string> bare_;  // servers without a known region, at the last look

  // Its answers use all members above until it has ended.
  const std::unique_ptr<hbase::Client> client_;
  // For what waits for the master.
  ThreadExecutor waiters_;
};

}  // namespace tamis
