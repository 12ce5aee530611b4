// Poller: keeps a GlobalIndex up to date by one long poll to each region server at all times. A
// server that asks for a pause gets one; a server that fails is polled less and less often.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/region_server.h"
#include "tamis/routing/global_index.h"

namespace tamis {

class Poller : public std::enable_shared_from_this<Poller> {
 public:
  struct Options {
    Duration wait = std::chrono::milliseconds(300);  // how long a server may hold a poll
    Duration margin = std::chrono::seconds(1);       // a poll not answered so long after it is lost
    // The pause after a poll that failed, or was answered at once without news; it doubles with
    // each further one, up to longest_pause.
    Duration pause = std::chrono::milliseconds(50);
    Duration longest_pause = std::chrono::seconds(1);
    Duration look_for_servers = std::chrono::seconds(1);  // new ones, and those that are gone
  };
  // Called when a server reports the version of a table's schema; 0: the table was dropped.
  using OnTable = std::function<void(uint32_t table_id, uint64_t schema_version)>;

  Poller(Cluster* cluster, Executor* executor, std::shared_ptr<GlobalIndex> index, Options options,
         OnTable on_table)
      : cluster_(cluster),
        executor_(executor),
        index_(std::move(index)),
        options_(options),
        on_table_(std::move(on_table)) {}

  void Start();
  // Looks for servers again, if that had ended since memory did not suffice.
  void KeepLooking() {
    if (!looking_.exchange(true)) LookForServers();
  }
  // Polls that were answered, and that failed, since the start.
  uint64_t answered() const { return answered_.load(); }
  uint64_t failed() const { return failed_.load(); }
  // Waits for calls to the cluster that have begun; none begins afterwards, none goes on. Not to be
  // called from a task of the executor.
  void Stop();
  // Tells the servers that this coordinator ends, so that no put waits for it any longer, and waits
  // at most `patience` for their answers. From here on no region is excluded. REQUIRES: Stop was
  // called.
  void Leave(Duration patience);

 private:
  struct Server {
    std::string name;
    std::shared_ptr<RegionServer> stub;
    uint64_t number = 0;     // the number of the poll that is under way, or of the last one
    bool under_way = false;  // it is not answered yet
    Time sent{};             // when it was sent
    pb::PollRequest request;
    bool watched = false;    // a task looks whether it is lost
    Duration pause{};        // the last one that was made for want of a good answer
    Time due = Time::max();  // by then it should have been polled again
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
  void TakeServers(const std::vector<ServerInfo>& servers);
  void Poll(const std::string& name);
  void WatchAfter(const std::string& name, Duration delay);
  void Look(const std::string& name);
  void OnReply(const std::string& name, uint64_t number, Time sent, Result<pb::PollReply> reply);
  Duration PauseAfter(Server* server, const Result<pb::PollReply>& reply, Time now) const;
  Duration LongerPause(Server* server) const;
  void PollAfter(const std::string& name, uint64_t number, Duration pause);
  // The servers whose polling ended, since there was no memory for a step of it.
  std::vector<std::string> Forgotten();
  void PollAgain(const std::string& name, uint64_t number);

  Cluster* const cluster_;
  Executor* const executor_;
  const std::shared_ptr<GlobalIndex> index_;  // an answer may come after the engine has gone
  const Options options_;
  const OnTable on_table_;

  std::mutex mutex_;
  std::condition_variable idle_;
  int calls_ = 0;
  bool stopped_ = false;
  std::atomic<bool> looking_ = false;  // a task is to look for servers
  std::atomic<uint64_t> answered_ = 0;
  std::atomic<uint64_t> failed_ = 0;
  std::map<std::string, Server> servers_;
};

}  // namespace tamis
