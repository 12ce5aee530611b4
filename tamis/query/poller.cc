#include "tamis/query/poller.h"

#include <vector>

namespace tamis {

void Poller::Start() { LookForServers(); }

void Poller::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
}

void Poller::LookForServers() {
  std::vector<std::string> lost;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    // A poll that is never answered must not end the polling.
    for (const auto& [name, server] : servers_) {
      if (executor_->Now() - server.sent >= options_.wait + options_.timeout) lost.push_back(name);
    }
  }
  for (const std::string& name : lost) Poll(name);
  cluster_->ListServers([weak = weak_from_this()](Result<std::vector<ServerInfo>> servers) {
    auto self = weak.lock();
    if (!self || !servers.ok()) return;
    for (const ServerInfo& info : *servers) {
      {
        std::lock_guard lock(self->mutex_);
        if (self->stopped_ || !self->servers_.try_emplace(info.name).second) continue;
        self->servers_[info.name].stub = self->cluster_->Server(info.name);
      }
      self->Poll(info.name);
    }
  });
  executor_->PostAfter(options_.look_for_servers, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->LookForServers();
  });
}

void Poller::Poll(const std::string& name) {
  std::shared_ptr<RegionServer> stub;
  uint64_t number;
  const Time sent = executor_->Now();
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    Server& server = servers_[name];
    stub = server.stub;
    number = ++server.number;
    server.sent = sent;
  }
  stub->Poll(index_->NextPoll(name, options_.wait),
             [weak = weak_from_this(), name, number, sent](Result<pb::PollReply> reply) {
               if (auto self = weak.lock()) self->OnReply(name, number, sent, std::move(reply));
             });
}

void Poller::OnReply(const std::string& name, uint64_t number, Time sent,
                     Result<pb::PollReply> reply) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
  }
  // A late answer is as good as its numbers are; the index sees to that.
  if (reply.ok()) index_->Apply(name, *reply, sent, executor_->Now());
  auto again = [weak = weak_from_this(), name, number] {
    if (auto self = weak.lock()) self->PollAgain(name, number);
  };
  // In one process a poll may be answered before its call returns; then the next one is sent from
  // inside of the call, but not for ever.
  constexpr int kDeepest = 8;
  thread_local int depth = 0;
  if (reply.ok() && depth < kDeepest) {
    ++depth;
    again();
    --depth;
  } else if (reply.ok()) {
    executor_->Post(std::move(again));
  } else {
    executor_->PostAfter(options_.retry_after, std::move(again));
  }
}

// Unless a later poll is under way by now.
void Poller::PollAgain(const std::string& name, uint64_t number) {
  {
    std::lock_guard lock(mutex_);
    if (servers_[name].number != number) return;
  }
  Poll(name);
}

}  // namespace tamis
