// Poller: keeps a GlobalIndex up to date: one long poll per region server, at all times.
//
// Threads: safe.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/routing/global_index.h"

namespace tamis {

class Poller : public std::enable_shared_from_this<Poller> {
 public:
  struct Options {
    Duration wait = std::chrono::milliseconds(300);  // how long a server may hold a poll
    Duration timeout = std::chrono::seconds(5);      // beyond the wait: then it is lost
    Duration retry_after = std::chrono::milliseconds(50);
    Duration look_for_servers = std::chrono::seconds(1);  // new ones, and those whose poll is lost
  };

  Poller(Cluster* cluster, Executor* executor, std::shared_ptr<GlobalIndex> index, Options options)
      : cluster_(cluster), executor_(executor), index_(std::move(index)), options_(options) {}

  void Start();
  // Waits for calls to the cluster that have begun; none begins afterwards, none goes on. Not to be
  // called from a task of the executor.
  void Stop();

 private:
  struct Server {
    std::shared_ptr<RegionServer> stub;
    uint64_t number = 0;  // of the poll that is under way
    Time sent{};          // when it was sent
  };

  // A call to the cluster is under way while it lives, unless polling has been stopped.
  class Call {
   public:
    explicit Call(Poller* poller);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    explicit operator bool() const { return begun_; }

   private:
    Poller* const poller_;
    bool begun_;
  };

  void LookForServers();
  void Poll(const std::string& name);
  void OnReply(const std::string& name, uint64_t number, Time sent, Result<pb::PollReply> reply);
  void PollAgain(const std::string& name, uint64_t number);

  Cluster* const cluster_;
  Executor* const executor_;
  const std::shared_ptr<GlobalIndex> index_;  // an answer may come after the engine has gone
  const Options options_;

  std::mutex mutex_;
  std::condition_variable idle_;
  int calls_ = 0;
  bool stopped_ = false;
  std::map<std::string, Server> servers_;
};

}  // namespace tamis
