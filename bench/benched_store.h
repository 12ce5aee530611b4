// BenchedStore: a store of the embedded cluster in a temporary directory, its coordinator, and
// SQLite over it; the bytes of the servers' answers are counted.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/thread_executor.h"
#include "tamis/cluster/region_server.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/sql/session.h"

namespace tamis {

// Counts the bytes of the answers to searches.
class CountedServer : public RegionServer {
 public:
  CountedServer(std::shared_ptr<RegionServer> server, std::atomic<uint64_t>* bytes)
      : server_(std::move(server)), bytes_(bytes) {}
  void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override {
    server_->Mutate(request, std::move(done));
  }
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
    server_->Search(request, [bytes = bytes_, done](Result<pb::SearchReply> reply) {
      if (reply.ok()) *bytes += reply->ByteSizeLong();
      done(std::move(reply));
    });
  }
  void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override {
    server_->Poll(request, std::move(done));
  }

 private:
  const std::shared_ptr<RegionServer> server_;
  std::atomic<uint64_t>* const bytes_;
};

class CountedCluster : public Cluster {
 public:
  explicit CountedCluster(Cluster* cluster) : cluster_(cluster) {}
  std::shared_ptr<RegionServer> Server(const std::string& name) override {
    return std::make_shared<CountedServer>(cluster_->Server(name), &bytes);
  }
  void ListServers(Callback<std::vector<ServerInfo>> done) override {
    cluster_->ListServers(std::move(done));
  }
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override {
    cluster_->ListRegions(table, std::move(stale), std::move(done));
  }
  void ListTables(Callback<std::vector<TableSchema>> done) override {
    cluster_->ListTables(std::move(done));
  }
  void GetTable(const std::string& name, Callback<TableSchema> done) override {
    cluster_->GetTable(name, std::move(done));
  }

  std::atomic<uint64_t> bytes = 0;

 private:
  Cluster* const cluster_;
};

class BenchedStore {
 public:
  // `name` is part of the directory's.
  explicit BenchedStore(const std::string& name);
  ~BenchedStore();

  // A table whose key is its first column, an int64 that is below `rows`, in so many equal regions.
  SchemaPtr MakeTable(const TableSchema& schema, int64_t rows, int64_t regions);
  // Writes a batch, each row of which must be accepted.
  void Put(const SchemaPtr& table, std::vector<Write> writes);
  // Waits until the coordinator has the filters of all regions.
  void AwaitFilters(const SchemaPtr& table);

  // The rows that a statement returns, a line each. REQUIRES: all tables are made.
  std::string Run(const std::string& sql);
  // The same in the form in which `tamis sql` runs it (rewritten_query.h).
  std::string RunRewritten(const std::string& sql);
  // The searches of the statement, and its rows.
  struct Explained {
    std::vector<Explain> searches;
    std::string rows;
  };
  Explained RunExplained(const std::string& sql);

  RocksCluster& cluster() { return *cluster_; }
  ThreadExecutor& executor() { return executor_; }
  Engine& engine() { return *session_->engine; }
  Session& session() { return *session_; }
  std::atomic<uint64_t>& answer_bytes() { return counted_->bytes; }

 private:
  std::filesystem::path directory_;
  ThreadExecutor executor_{4};
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<CountedCluster> counted_;
  std::shared_ptr<Session> session_;
  sqlite3* db_ = nullptr;
};

}  // namespace tamis
