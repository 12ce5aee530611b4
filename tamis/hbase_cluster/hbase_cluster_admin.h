// HBaseClusterAdmin: changes and maintains the indexed tables of an HBaseCluster, through HBase's
// master where possible and through the coprocessor of Tamis otherwise.
//
// HBase is slow at much of this: a schema change ends when every region of the table has been
// reopened. Calls return after that; ClientOptions::operation_timeout limits each. Killing, pausing
// and starting servers is not supported here; operators do that.
//
// Threads: safe. Callbacks run on the executor. REQUIRES: the cluster outlives this object; no task
// of the executor uses this object when it is destroyed.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/thread_executor.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/cluster/job_table.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/installation.h"

namespace tamis {

class HBaseClusterAdmin : public ClusterAdmin {
 public:
  struct Options {
    hbase::ClientOptions client{.operation_timeout = std::chrono::minutes(10)};
    // How long a split or merge is retried. HBase refuses to split or merge a region again before
    // the region has been compacted, its old files are deleted, and hbase:meta is cleaned up. HBase
    // does the last two every two and five minutes.
    Duration patience = std::chrono::minutes(6);
  };

  static Result<std::unique_ptr<HBaseClusterAdmin>> Open(Options options, HBaseCluster* cluster,
                                                         Executor* executor);
  ~HBaseClusterAdmin() override;

  bool Can(Capability capability) const override;

  // Stores each column in a cell; a column without a cell name gets one.
  void CreateTable(TableSchema schema, Callback<TableSchema> done) override;
  void DropTable(const std::string& table, DropOptions options, DoneCallback done) override;
  // `foreign_name` is "NAME" or "NAMESPACE:NAME". Safe to repeat after an interruption.
  void AttachTable(TableSchema schema, const std::string& foreign_name,
                   Callback<TableSchema> done) override;
  void DetachTable(const std::string& table, DoneCallback done) override;
  void DetachForeignTable(const std::string& foreign_name, DoneCallback done) override;
  void ListUnnamedTables(Callback<std::vector<std::string>> done) override;
  void AddColumn(const std::string& table, Column column, Callback<TableSchema> done) override;
  void CreateIndex(const std::string& table, IndexSpec index, Callback<TableSchema> done) override;
  void DropIndex(const std::string& table, const std::string& index,
                 Callback<TableSchema> done) override;
  void GetIndexProgress(const std::string& table, const std::string& index,
                        Callback<IndexProgress> done) override;

  void SplitRegion(RegionId region, std::string key, DoneCallback done) override;
  void MergeRegion(RegionId region, DoneCallback done) override;
  void MoveRegion(RegionId region, const std::string& server, DoneCallback done) override;

  void KillServer(const std::string& server, DoneCallback done) override;
  void PauseServer(const std::string& server, DoneCallback done) override;
  void ResumeServer(const std::string& server, DoneCallback done) override;

  void GetStatus(Callback<ClusterStatus> done) override;
  void Examine(Callback<std::vector<Finding>> done) override;

  void StartJob(JobSpec spec, Callback<uint64_t> done) override;
  void GetJob(uint64_t job, Callback<JobInfo> done) override;

 private:
  HBaseClusterAdmin(const Options& options, HBaseCluster* cluster, Executor* executor,
                    std::unique_ptr<hbase::Client> client);

  // Runs blocking work on a separate thread and calls `done` on the executor.
  template <class T>
  void Do(Callback<T> done, std::function<Result<T>()> work);
  void DoStatus(DoneCallback done, std::function<Status()> work);

  Result<TableSchema> Create(TableSchema schema);
  Status Drop(const std::string& table, DropOptions options);
  Status CheckJar(bool strict);
  Result<std::string> OwnName(const std::string& foreign_name) const;
  Result<TableSchema> Attach(const TableSchema& schema, const std::string& foreign_name);
  Result<hbase::TableDescription> DescribeForeign(const std::string& hbase_name);
  // For a table that has a schema: gives it the name, or restores attributes that were removed.
  Result<TableSchema> AttachAgain(const IndexedTable& before, const TableSchema& wanted);
  // Fails if another table got the same name meanwhile.
  Status CheckName(const std::string& name);
  Status LookAtRows(const std::string& hbase_name, const TableSchema& schema);
  Status Detach(const std::string& name);
  Status DetachForeign(const std::string& foreign_name);
  Result<TableSchema> Change(const std::string& table,
                             const std::function<Result<TableSchema>(TableSchema)>& change);
  // Reads the region from hbase:meta.
  Result<hbase::Region> FindRegion(RegionId id);
  Result<std::vector<hbase::RegionPtr>> RegionsOf(const std::string& hbase_table);
  Result<std::vector<hbase::RegionPtr>> RegionsOfAll();  // of all indexed tables
  Result<IndexProgress> Progress(const std::string& table, const std::string& index);
  Status Split(RegionId id, const std::string& key);
  Status SplitNow(const hbase::Region& region, std::string key);
  Result<std::string> MiddleOf(const hbase::Region& region);
  Status Merge(RegionId id);
  Status Move(RegionId id, const std::string& server);
  // Returns the replies in the order of the servers.
  std::vector<Result<pb::StatusReply>> AskStatus(const std::vector<std::string>& servers,
                                                 uint32_t table_id);
  Result<ClusterStatus> AskAll();
  Result<Installation> AskProcesses();
  Result<std::vector<Finding>> ExamineInstallation();
  Status RunJob(uint64_t job, const JobSpec& spec, const std::optional<IndexedTable>& table);
  Status Compact(uint64_t job);
  Status Pause(Duration pause);  // kCancelled: the cluster was closed
  void SetProgress(uint64_t job, uint64_t done, uint64_t total);
  // Repeats `work` while it fails for a reason that may end.
  Status RetryWhileBusy(const std::function<Status()>& work);
  // Returns `refused`. Requests a compaction of the regions if that may end the reason.
  Status AfterCompaction(const std::vector<hbase::Region>& regions, Status refused);

  const Options options_;
  HBaseCluster* const cluster_;
  Executor* const executor_;
  const std::unique_ptr<hbase::Client> client_;
  JobTable jobs_;
  std::atomic<bool> closed_ = false;
  ThreadExecutor workers_;
  ThreadExecutor job_workers_;  // further jobs wait
};

}  // namespace tamis
