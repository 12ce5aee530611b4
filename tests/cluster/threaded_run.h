// ThreadedRun: what the threads of a randomized run share: the cluster with its table, the
// coordinators, the log of writes, and the progress. If it cannot be opened,
// the run has failed.
//
// Threads: safe; SetAtRest needs it for itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/query/engine.h"
#include "tests/cluster/plain_client.h"
#include "tests/cluster/random_rows.h"
#include "tests/cluster/run_progress.h"
#include "tests/cluster/sql_client.h"
#include "tests/cluster/sql_process.h"
#include "tests/cluster/threaded_cluster.h"
#include "tests/cluster/write_log.h"

namespace tamis {

class ThreadedRun {
 public:
  static constexpr int64_t kShared = 4;  // rows that all clients write: those with the least keys

  ThreadedRun(const ClusterKind& kind, const ThreadedClusterOptions& options);
  ~ThreadedRun();

  const ThreadedClusterOptions& options() const { return options_; }
  RunProgress& progress() { return progress_; }
  WriteLog& log() { return log_; }
  ClusterUnderTest& cluster() { return *cluster_; }
  const SchemaPtr& table() const { return table_; }  // at its creation: columns do not change

  using Engines = std::array<std::unique_ptr<Engine>, 2>;
  const Engines& engines() const { return engines_; }
  Engine& RandomEngine(Random& random) const { return *engines_[random.Uniform(engines_.size())]; }
  std::unique_ptr<Engine> StartEngine();
  SqlClient& sql(size_t client) { return *sql_[client]; }  // one a client
  // A coordinator in a process of its own, which StartProcess replaces; nullptr: none.
  std::shared_ptr<SqlProcess> process();
  void StartProcess();
  // A client of HBase that knows no index; nullptr: none.
  PlainClient* plain() { return plain_.get(); }
  // A coordinator whose network can be cut; nullptr: the kind has none.
  FarCluster* far() { return far_.get(); }
  Engine* far_engine() { return far_engine_.get(); }

  size_t servers() const { return servers_.size(); }
  const std::string& RandomServer(Random& random) const {
    return servers_[random.Uniform(servers_.size())];
  }
  Random RandomOf(uint64_t thread) const { return Random(Mix(options_.seed * 1000 + thread)); }

  // The table's schema as the engine has it; nullptr: no server answered, or the run has failed.
  SchemaPtr SchemaOf(Engine& engine);
  // No server could give an answer, or not in time.
  static bool IsAbsence(const Status& status);
  // True when the status says that no server answered, as it may be in an outage.
  bool TakeAbsence(const std::string& of, const Status& status);

  // Writer i alone writes the rows whose key modulo the number of writers is i, but for the first
  // few, which all write. Behind the clients comes the plain one, if there is one.
  int Writers() const { return options_.clients + (options_.plain_client.empty() ? 0 : 1); }
  int64_t OwnKey(int writer, RandomRows& rows) const {
    return kShared + rows.RandomKey() / Writers() * Writers() + writer;
  }
  bool IsOfPlainClient(int64_t key) const {
    return key >= kShared && (key - kShared) % Writers() == options_.clients;
  }
  int64_t EndOfKeys() const { return kShared + RandomRows::kKeys + Writers(); }

  // Nothing is under way: from now on every search must be answered. REQUIRES: no other thread.
  void SetAtRest() { at_rest_ = true; }
  bool at_rest() const { return at_rest_; }

 private:
  void Open(const ClusterKind& kind);
  void OpenSql(Engine& engine);
  void StartPlainClient();
  void SplitInHalf();
  std::unique_ptr<Engine> StartEngine(Cluster& cluster, Executor& executor);

  const ThreadedClusterOptions options_;
  RunProgress progress_;
  std::unique_ptr<ClusterUnderTest> cluster_;
  std::vector<std::string> servers_;
  Engines engines_;
  std::atomic<uint64_t> engines_started_ = 0;
  std::vector<std::unique_ptr<SqlClient>> sql_;
  std::mutex mutex_;
  std::shared_ptr<SqlProcess> process_;  // replaced by one thread, with mutex_
  std::unique_ptr<PlainClient> plain_;
  std::unique_ptr<FarCluster> far_;
  std::unique_ptr<Engine> far_engine_;
  SchemaPtr table_;
  WriteLog log_;
  bool at_rest_ = false;
};

}  // namespace tamis
