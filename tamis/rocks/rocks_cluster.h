// RocksCluster: the embedded cluster. One process, one RocksDB, several region servers, and what
// plays the master: it assigns regions, notices dead servers, splits, merges, moves, balances and
// changes schemas.
//
// Everything it decides stands in the catalog before a server hears of it. A region is opened under
// a new epoch; the fence keeps whoever had it before from writing or answering.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tamis/cluster/cluster.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/cluster/job_table.h"
#include "tamis/rocks/catalog.h"
#include "tamis/rocks/membership.h"
#include "tamis/rocks/rocks_region_server.h"
#include "tamis/rocks/store.h"

namespace tamis {

class RocksCluster : public Cluster, public ClusterAdmin {
 public:
  struct Options {
    Store::Options store;
    int servers = 8;
    RegionServerOptions server;
    Duration session_timeout = std::chrono::seconds(3);  // who is not heard so long is expelled
    Duration operation_timeout = std::chrono::seconds(30);
    bool balance = true;  // moves regions to servers that have fewer, after splits
    uint64_t seed = 0;    // of the seeds of new indexes; 0 = drawn from the system
    // Carries a server's heartbeat; a test may lose or delay it. Default: at once.
    std::function<void(const std::string& server, std::function<void()> deliver)> heartbeat_link;
    // The executor of a server; a test gives each one a clock of its own. Default: the cluster's.
    std::function<Executor*(const std::string& server)> executor_of;
  };

  // Opens or makes the store. Destroying the cluster saves its filters for the next opening. The
  // executor must outlive the cluster and must be stopped, or run no task of the cluster any more,
  // before the cluster is destroyed.
  static Result<std::unique_ptr<RocksCluster>> Open(Options options, Executor* executor);
  ~RocksCluster() override;

  // Cluster and ClusterAdmin.
  std::shared_ptr<RegionServer> Server(const std::string& name) override;
  void ListServers(Callback<std::vector<ServerInfo>> done) override;
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override;
  void ListTables(Callback<std::vector<TableSchema>> done) override;
  void GetTable(const std::string& name, Callback<TableSchema> done) override;

  bool Can(Capability) const override { return true; }
  void CreateTable(TableSchema schema, Callback<TableSchema> done) override;
  void DropTable(const std::string& table, DoneCallback done) override;
  void AddColumn(const std::string& table, Column column, Callback<TableSchema> done) override;
  void CreateIndex(const std::string& table, IndexSpec index, Callback<TableSchema> done) override;
  void DropIndex(const std::string& table, const std::string& index,
                 Callback<TableSchema> done) override;
  void GetIndexProgress(const std::string& table, const std::string& index,
                        Callback<IndexProgress> done) override;
  void SplitRegion(RegionId region, std::string key, DoneCallback done) override;
  void MergeRegion(RegionId region, DoneCallback done) override;
  void MoveRegion(RegionId region, const std::string& server, DoneCallback done) override;
  void KillServer(const std::string& server, DoneCallback done) override { done(Kill(server)); }
  void PauseServer(const std::string& server, DoneCallback done) override { done(Pause(server)); }
  void ResumeServer(const std::string& server, DoneCallback done) override { done(Resume(server)); }
  void GetStatus(Callback<ClusterStatus> done) override;
  void StartJob(JobSpec spec, Callback<uint64_t> done) override;
  void GetJob(uint64_t job, Callback<JobInfo> done) override { done(jobs_.Find(job)); }

  // What the jobs do. `part` is told of each part that was done.
  void Check(
      const std::string& table, Callback<CheckReport> done,
      const std::function<void()>& part = [] {});
  void RebuildIndex(
      const std::string& table, const std::string& index, DoneCallback done,
      const std::function<void()>& part = [] {});
  void Balance(Callback<uint64_t> done);  // how many regions were moved
  Status Compact() { return store_->Compact(); }

  // kNotFound for a server that there is not.
  // Declares the server dead, whatever it is, and gives its regions to others at once; it notices
  // with its next heartbeat, and starts anew.
  Status Expel(const std::string& server);
  Status Kill(const std::string& server);
  Status Pause(const std::string& server);
  Status Resume(const std::string& server);

  Store& store() { return *store_; }
  Catalog& catalog() { return *catalog_; }
  std::shared_ptr<RocksRegionServer> LocalServer(const std::string& name) const;
  // Background work that waits or runs: indexes being built, splits, moves.
  size_t pending_work() const;

 private:
  class Stub;

  RocksCluster(Options options, Executor* executor);
  void StartServer(const std::string& name);
  std::vector<std::shared_ptr<RocksRegionServer>> LiveServers() const;
  void AssignAll();
  void SaveFilters();
  void Sweep();
  void GiveAwayUnserved();
  Duration OpeningWait() const;
  std::string LeastLoaded(const std::set<std::string>& without = {}) const;
  std::map<std::string, uint64_t> Loads() const;
  Status Assign(pb::RegionRecord record, const std::string& server, Duration wait);
  Duration WaitAfter(Result<bool> closed_in_order) const;
  void Reopen(const pb::RegionRecord& record, Duration wait);
  Status CommitMerge(const pb::RegionRecord& left, const pb::RegionRecord& right, Duration wait);
  Result<pb::RegionRecord> FindRegion(RegionId region, std::string_view doing) const;
  std::vector<RegionInfo> InfosOf(const TableSchema& table,
                                  const std::vector<KeyRange>& wanted) const;
  Result<uint64_t> CountParts(const JobSpec& spec) const;
  void RunJob(uint64_t job, const JobSpec& spec);
  bool IsServed(const pb::RegionRecord& region) const;
  void SetOwner(const std::string& server, pb::RegionRecord* region) const;
  bool IsCurrent(const pb::RegionRecord& record) const;
  Status CommitTable(TableSchema* schema, pb::RegionRecord* region);
  Status CommitDrop(const std::string& name);
  uint64_t NewSeed(uint32_t table_id, uint32_t index_id) const;
  Result<TableSchema> ChangeSchema(const std::string& table,
                                   const std::function<Result<TableSchema>(TableSchema)>& change);
  void Broadcast(const TableSchema& schema, Callback<TableSchema> done);
  void BalanceNext(std::shared_ptr<uint64_t> moved, Callback<uint64_t> done);
  void BalanceSoon();
  // Calls done once: with what the server says, or with an error when it is killed before.
  template <class Answer>
  std::function<void(Answer)> UnlessKilled(std::shared_ptr<RocksRegionServer> server,
                                           std::function<void(Answer)> done);
  // Calls done once: with what the operation says, or with a time-out.
  DoneCallback Once(const std::string& doing, DoneCallback done);

  const Options options_;
  Executor* const executor_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<FilterSnapshots> snapshots_;
  std::unique_ptr<Catalog> catalog_;
  FenceTable fences_;
  Membership membership_;
  JobTable jobs_;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<RocksRegionServer>> servers_;
  uint64_t next_start_code_ = 0;
  Time last_sweep_{};
  std::atomic<int> moving_ = 0;
  std::atomic<bool> balancing_ = false;
  std::mutex schema_mutex_;  // one change of a schema at a time
  // Emptied by the destructor: tasks that come later find nothing.
  std::shared_ptr<std::atomic<RocksCluster*>> self_;
};

}  // namespace tamis
