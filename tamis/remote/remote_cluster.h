// RemoteCluster: the tables, regions and servers of a store behind `tamis serve`, and their
// administration, as far as the server permits it.
//
// A call that changes nothing is sent again while the server cannot be reached, within the
// time-out. A call that changes something is tried again only while no byte of it was sent;
// kDeadlineExceeded says that it may have been carried out.
//
// Threads: safe. Callbacks run on the executor.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/remote/http_client.h"
#include "tamis/remote/remote.pb.h"

namespace tamis {

class RemoteCluster final : public Cluster, public ClusterAdmin {
 public:
  // Asks the server once, so that a wrong address or token is reported here. Blocks.
  static Result<std::shared_ptr<RemoteCluster>> Open(std::shared_ptr<HttpClient> client,
                                                     Executor* executor, Duration timeout);

  // The answer to a call, or its failure.
  void Call(const pb::ClusterCall& call, Callback<pb::ClusterAnswer> done);
  // The same, blocking.
  Result<pb::ClusterAnswer> Ask(const pb::ClusterCall& call);

  // A stub all of whose calls fail: region servers are behind the server.
  std::shared_ptr<RegionServer> Server(const std::string& name) override;
  void ListServers(Callback<std::vector<ServerInfo>> done) override;
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override;
  void ListTables(Callback<std::vector<TableSchema>> done) override;
  void GetTable(const std::string& name, Callback<TableSchema> done) override;

  bool Can(Capability capability) const override;
  void CreateTable(TableSchema schema, Callback<TableSchema> done) override;
  void DropTable(const std::string& table, DropOptions options, DoneCallback done) override;
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
  void StartJob(JobSpec spec, Callback<uint64_t> done) override;
  void GetJob(uint64_t job, Callback<JobInfo> done) override;

 private:
  class Attempts;
  RemoteCluster(std::shared_ptr<HttpClient> client, Executor* executor, Duration timeout)
      : client_(std::move(client)), executor_(executor), timeout_(timeout) {}

  template <class T, class Read>
  void CallFor(const pb::ClusterCall& call, Callback<T> done, Read read);
  void CallForSchema(const pb::ClusterCall& call, Callback<TableSchema> done);
  void Do(const pb::ClusterCall& call, DoneCallback done);
  // The call with the table's schema, after `add` has added to it.
  template <class Add>
  void ChangeTable(const std::string& table, Callback<TableSchema> done, Add add);

  const std::shared_ptr<HttpClient> client_;
  Executor* const executor_;
  const Duration timeout_;
  std::set<Capability> capabilities_;
};

}  // namespace tamis
