// Membership: which region servers are alive, as ZooKeeper knows it in a real cluster. A server
// sends heartbeats; one from which none has come for a session timeout is declared dead, and that
// life of it (its start code) never counts as alive again.
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

  void Join(const std::string& server, uint64_t start_code, Time now) {
    std::lock_guard lock(mutex_);
    sessions_[server] = {start_code, now, false};
  }

  // False when this life of the server has been declared dead.
  bool Heartbeat(const std::string& server, uint64_t start_code, Time now) {
    std::lock_guard lock(mutex_);
    auto found = sessions_.find(server);
    if (found == sessions_.end() || found->second.start_code != start_code || found->second.dead) {
      return false;
    }
    found->second.last = std::max(found->second.last, now);
    return true;
  }

  // Declares dead those whose session is over.
  void Expire(Time now) {
    std::lock_guard lock(mutex_);
    for (auto& [server, session] : sessions_) {
      if (now - session.last >= session_timeout_) session.dead = true;
    }
  }

  // All sessions start anew: after the whole process was stopped for a while, nobody is to blame.
  void Forgive(Time now) {
    std::lock_guard lock(mutex_);
    for (auto& [server, session] : sessions_) session.last = now;
  }

  bool IsAlive(const std::string& server) const {
    std::lock_guard lock(mutex_);
    auto found = sessions_.find(server);
    return found != sessions_.end() && !found->second.dead;
  }

 private:
  struct Session {
    uint64_t start_code = 0;
    Time last{};
    bool dead = false;
  };

  const Duration session_timeout_;
  mutable std::mutex mutex_;
  std::map<std::string, Session> sessions_;
};

}  // namespace tamis
