// HBaseClusterAdmin: changes and maintains the indexed tables of an HBaseCluster, through HBase's
// master where possible and through the coprocessor of Tamis otherwise. The work is done by
// HBaseSchemaChanges, HBaseAttachments, HBaseRegionChanges, HBaseJobs and ServerReports, whose
// calls block; HBaseClusterAdmin runs them on threads of its own.
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
#include <memory>
#include <string>
#include <vector>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/hbase_cluster/hbase_attachments.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/hbase_jobs.h"
#include "tamis/hbase_cluster/hbase_region_changes.h"
#include "tamis/hbase_cluster/hbase_schema_changes.h"
#include "tamis/hbase_cluster/region_directory.h"
#include "tamis/hbase_cluster/server_reports.h"
#include "tamis/hbase_cluster/workers.h"

namespace tamis {

class HBaseClusterAdmin : public ClusterAdmin {
 public:
  struct Options {
    hbase::ClientOptions client{.operation_timeout = std::chrono::minutes(10)};
    // How long a split or merge is retried (HBaseRegionChanges).
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
  void DropColumn(const std::string& table, const std::string& column,
                  Callback<TableSchema> done) override;
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

  const std::unique_ptr<hbase::Client> client_;
  std::atomic<bool> closed_ = false;
  RegionDirectory regions_;
  ServerReports reports_;
  HBaseSchemaChanges schema_changes_;
  HBaseAttachments attachments_;
  HBaseRegionChanges region_changes_;
  HBaseJobs jobs_;
  Workers workers_;
};

}  // namespace tamis
