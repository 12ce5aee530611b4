// RocksCluster: the embedded cluster. One process, one RocksDB, several region servers, and the
// parts of a master: ServerLives detects dead servers, RegionAssignment assigns regions to servers,
// RegionChanges splits, merges, moves and balances regions, SchemaChanges creates and changes
// tables, RocksJobs runs long work.
//
// Every decision is written to the catalog before a server acts on it.
//
// Threads: safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/cluster/cluster.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/rocks/catalog.h"
#include "tamis/rocks/filter_snapshots.h"
#include "tamis/rocks/region_assignment.h"
#include "tamis/rocks/region_changes.h"
#include "tamis/rocks/rocks_jobs.h"
#include "tamis/rocks/schema_changes.h"
#include "tamis/rocks/server_lives.h"
#include "tamis/rocks/store.h"

namespace tamis {

class RocksCluster : public Cluster, public ClusterAdmin {
 public:
  struct Options {
    Store::Options store;
    int servers = 8;
    RegionServerOptions server;
    // A server that sends no heartbeat for so long is expelled.
    Duration session_timeout = std::chrono::seconds(3);
    Duration operation_timeout = std::chrono::seconds(30);
    bool balance = true;  // moves regions to servers that have fewer, after splits
    uint64_t seed = 0;    // generates the seeds of new indexes; 0 = drawn from the system
    // Delivers a server's heartbeat; a test may lose or delay it. Default: delivers at once.
    std::function<void(const std::string& server, std::function<void()> deliver)> heartbeat_link;
    // The executor of a server; a test may give each server a clock of its own. Default: that of
    // the cluster.
    std::function<Executor*(const std::string& server)> executor_of;
  };

  // Opens or creates the store. Destroying the cluster saves its filters for the next opening. The
  // executor must outlive the cluster and must be stopped, or run no task of the cluster any more,
  // before the cluster is destroyed.
  static Result<std::unique_ptr<RocksCluster>> Open(Options options, Executor* executor);
  ~RocksCluster() override;

  // Cluster and ClusterAdmin.
  std::shared_ptr<RegionServer> Server(const std::string& name) override {
    return lives_->Stub(name);
  }
  void ListServers(Callback<std::vector<ServerInfo>> done) override;
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override;
  void ListTables(Callback<std::vector<TableSchema>> done) override;
  void GetTable(const std::string& name, Callback<TableSchema> done) override;

  // Everything except the operations on tables and clusters that other programs created.
  bool Can(Capability capability) const override {
    return capability != Capability::kAttachTable && capability != Capability::kExamine;
  }
  void CreateTable(TableSchema schema, Callback<TableSchema> done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    done(schemas_->Create(std::move(schema)));
  }
  void DropTable(const std::string& table, DropOptions, DoneCallback done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    done(schemas_->Drop(table));
  }
  void AddColumn(const std::string& table, Column column, Callback<TableSchema> done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    schemas_->AddColumn(table, std::move(column), std::move(done));
  }
  void DropColumn(const std::string& table, const std::string& column,
                  Callback<TableSchema> done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    schemas_->DropColumn(table, column, std::move(done));
  }
  void CreateIndex(const std::string& table, IndexSpec index, Callback<TableSchema> done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    schemas_->CreateIndex(table, std::move(index), std::move(done));
  }
  void DropIndex(const std::string& table, const std::string& index,
                 Callback<TableSchema> done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    schemas_->DropIndex(table, index, std::move(done));
  }
  void GetIndexProgress(const std::string& table, const std::string& index,
                        Callback<IndexProgress> done) override;
  void SplitRegion(RegionId region, std::string key, DoneCallback done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    changes_->Split(region, std::move(key), std::move(done));
  }
  void MergeRegion(RegionId region, DoneCallback done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    changes_->Merge(region, std::move(done));
  }
  void MoveRegion(RegionId region, const std::string& server, DoneCallback done) override {
    if (Status refused = store_->RefuseChange(); !refused.ok()) return done(refused);
    changes_->Move(region, server, std::move(done));
  }
  void KillServer(const std::string& server, DoneCallback done) override { done(Kill(server)); }
  void PauseServer(const std::string& server, DoneCallback done) override { done(Pause(server)); }
  void ResumeServer(const std::string& server, DoneCallback done) override { done(Resume(server)); }
  void GetStatus(Callback<ClusterStatus> done) override;
  void StartJob(JobSpec spec, Callback<uint64_t> done) override {
    const bool reads = spec.kind == JobSpec::Kind::kCheck;
    if (Status refused = store_->RefuseChange(); !reads && !refused.ok()) return done(refused);
    jobs_->Start(std::move(spec), std::move(done));
  }
  void GetJob(uint64_t job, Callback<JobInfo> done) override { done(jobs_->Find(job)); }

  // The work of the jobs. They call `part` after each finished part.
  void Check(
      const std::string& table, Callback<CheckReport> done,
      const std::function<void()>& part = [] {}) {
    jobs_->Check(table, std::move(done), part);
  }
  void RebuildIndex(
      const std::string& table, const std::string& index, DoneCallback done,
      const std::function<void()>& part = [] {}) {
    jobs_->RebuildIndex(table, index, std::move(done), part);
  }
  void Balance(Callback<uint64_t> done) { changes_->Balance(std::move(done)); }
  Status Compact() { return store_->Compact(); }

  // Declares the server dead, even if it runs, and assigns its regions to other servers at once. A
  // running server learns of it with its next heartbeat, and starts again without regions.
  Status Expel(const std::string& server);
  // kNotFound when there is no server of that name.
  Status Kill(const std::string& server) { return lives_->Kill(server); }
  Status Pause(const std::string& server) { return lives_->Pause(server); }
  Status Resume(const std::string& server) { return lives_->Resume(server); }

  Store& store() { return *store_; }
  Catalog& catalog() { return *catalog_; }
  std::shared_ptr<RocksRegionServer> LocalServer(const std::string& name) const {
    return lives_->Find(name);
  }
  // Background work that waits or runs: indexes being built, splits, moves.
  size_t pending_work() const;

 private:
  RocksCluster(Options options, Executor* executor);
  Status Start();
  void SaveFilters();
  std::optional<IndexFailure> WhyIncomplete(const pb::RegionRecord& record, const Region* open,
                                            uint32_t index_id) const;
  std::vector<RegionInfo> InfosOf(const TableSchema& table,
                                  const std::vector<KeyRange>& wanted) const;

  const Options options_;
  Executor* const executor_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<FilterSnapshots> snapshots_;
  std::unique_ptr<Catalog> catalog_;
  FenceTable fences_;
  // Declared in the order of their dependencies: each part uses only parts declared before it.
  std::shared_ptr<ServerLives> lives_;
  std::shared_ptr<RegionAssignment> assignment_;
  std::shared_ptr<RegionChanges> changes_;
  std::unique_ptr<SchemaChanges> schemas_;
  std::shared_ptr<RocksJobs> jobs_;
};

}  // namespace tamis
