// SimCluster: an embedded cluster with its coordinators on one thread and a virtual clock: each
// node has a clock of its own, messages are late, lost and reordered, servers die and sleep, the
// disk fails and the process crashes, all by the seed.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/cluster/faults.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tests/cluster/failing_env.h"
#include "tests/cluster/node_clock.h"
#include "tests/cluster/sim_network.h"

namespace tamis {

class SimCluster {
 public:
  static constexpr int kServers = 5;
  static constexpr int kEngines = 2;
  static constexpr Duration kLease = std::chrono::milliseconds(100);
  static constexpr Duration kSession = std::chrono::milliseconds(300);
  // Together what clocks need that differ by 3 %, and no more.
  static constexpr Duration kLeaseMargin = std::chrono::microseconds(1500);

  struct Options {
    uint64_t seed = 1;
    int clock_drift = 15;      // each node's drift at most, in thousandths
    bool small_pages = false;  // answers of several pages
    uint64_t build_rows = 16;  // a step of a background job
    uint64_t split_bytes = 0;  // regions that grow are split
    uint64_t copied_change_bytes = 64 << 20;
    bool fence_searches = true;
    Faults faults;
  };

  explicit SimCluster(const Options& options);
  ~SimCluster();

  // Opens the store and starts the servers and the coordinators.
  Status Open();
  // How the store finds its saved filters when it is opened again.
  enum class Saved {
    kAll,    // the state after a clean close
    kNone,   // their list is out of date, so none is used
    kOlder,  // the filters of the saving before the last one are still there
  };
  // Drops everything in memory and the tasks under way, and opens the store again.
  Status Crash(Saved saved);

  SimExecutor& executor() { return executor_; }
  RocksCluster& cluster() { return *cluster_; }
  SimNetwork& network() { return *network_; }
  Engine& engine(size_t i) { return *engines_[i]; }
  void StopEngine(size_t i) { engines_[i].reset(); }
  void StartEngine(size_t i);
  const NetworkCounts& network_counts() const { return network_counts_; }

  std::string RandomServer();
  bool IsAsleep(const std::string& server) const { return asleep_.contains(server); }
  size_t asleep() const { return asleep_.size(); }
  void Kill(const std::string& server);
  void Pause(const std::string& server);
  void Wake(const std::string& server);   // both
  void Expel(const std::string& server);  // although it lives
  // The entries that a compaction drops are missed by a search that is behind the times and that no
  // fence ends: nothing is done where searches are not fenced.
  void Compact();
  void WakeLater(const std::string& server, Duration after);
  void WakeAll();
  // Heartbeats of the server are lost until then.
  void CutHeartbeats(const std::string& server, Time until) { heartbeats_cut_[server] = until; }
  void CutAllPolls(Time until);

  // The disk takes no more bytes.
  void FailWrites(bool fail) { env_.set_failing(fail); }

  // The region of the catalog that holds the key.
  std::optional<pb::RegionRecord> RegionOf(uint32_t table_id, const std::string& key) const;
  // The region as its owner has it; nullptr while it is not open, or its owner sleeps.
  std::shared_ptr<Region> OpenRegion(const pb::RegionRecord& record) const;

 private:
  using Filters = std::map<std::string, std::string>;

  Status OpenCluster();
  Executor* ClockOf(const std::string& node);
  Status ReplaceSavedFilters(Saved saved);

  const Options options_;
  SimExecutor executor_;
  Random random_;
  FailingEnv env_;
  std::map<std::string, std::unique_ptr<NodeClock>> clocks_;
  NetworkCounts network_counts_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<Engine> engines_[kEngines];
  uint64_t engine_seed_ = 100;
  std::set<std::string> asleep_;
  std::map<std::string, Time> heartbeats_cut_;
  Filters last_saved_;
};

}  // namespace tamis
