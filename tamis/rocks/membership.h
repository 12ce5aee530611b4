// Membership: which lives of region servers own regions, as ZooKeeper and the master know it in a
// real cluster.
//
// A life may be expelled at any time: when it has sent no heartbeat for a session timeout, when a
// new life of its server joins, or by order (Expel). Its regions are given to other servers only
// after that, and the heartbeat of an expelled life fails. So a heartbeat that succeeds proves that
// the server still owned its regions when it *sent* the heartbeat. Nothing else proves that, least
// of all a session that has not run out yet.
//
// Threads: safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "tamis/base/executor.h"

namespace tamis {

class Membership {
 public:
  explicit Membership(Duration session_timeout) : session_timeout_(session_timeout) {}

  // A new life. The former one of this name is expelled by that.
  void Join(const std::string& server, uint64_t start_code, Time now) {
    std::lock_guard lock(mutex_);
    sessions_[server] = {start_code, now, false};
  }

  // False when this life of the server has been expelled.
  bool Heartbeat(const std::string& server, uint64_t start_code, Time now) {
    std::lock_guard lock(mutex_);
    auto found = sessions_.find(server);
    if (found == sessions_.end() || found->second.start_code != start_code ||
        found->second.expelled) {
      return false;
    }
    found->second.last = std::max(found->second.last, now);
    return true;
  }

  // Expels the present life, whether or not it is heard.
  void Expel(const std::string& server) {
    std::lock_guard lock(mutex_);
    if (auto found = sessions_.find(server); found != sessions_.end()) {
      found->second.expelled = true;
    }
  }

  // Expels the lives whose session is over.
  void Expire(Time now) {
    std::lock_guard lock(mutex_);
    for (auto& [server, session] : sessions_) {
      if (now - session.last >= session_timeout_) session.expelled = true;
    }
  }

  // All sessions start again. For use after the whole process was stopped for a while: then no
  // server could send heartbeats.
  void Forgive(Time now) {
    std::lock_guard lock(mutex_);
    for (auto& [server, session] : sessions_) session.last = now;
  }

  bool IsAlive(const std::string& server) const {
    std::lock_guard lock(mutex_);
    auto found = sessions_.find(server);
    return found != sessions_.end() && !found->second.expelled;
  }

 private:
  struct Session {
    uint64_t start_code = 0;
    Time last{};
    bool expelled = false;
  };

  const Duration session_timeout_;
  mutable std::mutex mutex_;
  std::map<std::string, Session> sessions_;
};

}  // namespace tamis
