// ServerLives: the region servers of an embedded cluster. Each has a name, and one life after
// another, told apart by start codes. The end of a life drops all that it had in memory.
//
// Threads: safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/rocks/membership.h"
#include "tamis/rocks/rocks_region_server.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class ServerLives : public std::enable_shared_from_this<ServerLives> {
 public:
  struct Options {
    Duration session_timeout{};  // a life that sends no heartbeat for so long is expelled
    uint64_t first_start_code = 0;
    // See RocksCluster::Options.
    std::function<void(const std::string& server, std::function<void()> deliver)> heartbeat_link;
    std::function<Executor*(const std::string& server)> executor_of;
  };

  // `each` is what every life begins with; its name, start code and heartbeats are given here.
  ServerLives(Options options, ServerContext each, Executor* executor);

  // Called after a region that had grown was split. Set before the first life.
  void OnSplit(std::function<void()> on_split) { each_.on_split = std::move(on_split); }

  // A life of the server; a former one is over.
  void Start(const std::string& name);
  // The stub that clients hold: it finds the present life of the server at each call.
  std::shared_ptr<RegionServer> Stub(const std::string& name);

  // The present life, which may have been killed; nullptr when there never was one.
  std::shared_ptr<RocksRegionServer> Find(const std::string& name) const;
  // The same, but nullptr when it was killed.
  std::shared_ptr<RocksRegionServer> FindRunning(const std::string& name) const;
  std::vector<std::shared_ptr<RocksRegionServer>> Running() const;
  // The servers that run and have not been expelled.
  std::set<std::string> Alive() const;
  // This life has not been expelled. It may have been killed: that is noticed later.
  bool IsMember(const std::string& name) const { return membership_.IsAlive(name); }
  bool IsMember(const std::string& name, uint64_t start_code) const;
  // All servers, ordered by the number in their names, each with its count of these regions.
  std::vector<ServerInfo> Infos(const std::vector<pb::RegionRecord>& regions) const;

  // kNotFound when no server has that name.
  Status Kill(const std::string& name);
  Status Pause(const std::string& name);
  Status Resume(const std::string& name);
  Status Expel(const std::string& name);
  // Expels the lives that sent no heartbeat for the session timeout. To be called every
  // `look_interval`.
  void ExpelSilent();
  Duration look_interval() const { return options_.session_timeout / 4; }
  Duration session_timeout() const { return options_.session_timeout; }
  void KillAll();

 private:
  class PresentLife;

  void SendHeartbeat(const std::string& name, uint64_t start_code, std::function<void(bool)> done);
  void ComeBack(const std::string& name, uint64_t start_code);

  const Options options_;
  ServerContext each_;
  Executor* const executor_;
  Membership membership_;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<RocksRegionServer>> servers_;
  uint64_t next_start_code_;
  Time last_look_;
};

}  // namespace tamis
