#include "tamis/query/poller.h"

namespace tamis {

void Poller::Start() { LookForServers(); }

void Poller::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
}

void Poller::LookForServers() {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
  }
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
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    Server& server = servers_[name];
    stub = server.stub;
    number = ++server.number;
  }
  const Time sent = executor_->Now();
  stub->Poll(index_->NextPoll(name, options_.wait),
             [weak = weak_from_this(), name, number, sent](Result<pb::PollReply> reply) {
               if (auto self = weak.lock()) self->OnReply(name, number, sent, std::move(reply));
             });
  // A poll that is never answered must not end the polling.
  Next(name, number, options_.wait + options_.timeout);
}

void Poller::OnReply(const std::string& name, uint64_t number, Time sent,
                     Result<pb::PollReply> reply) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
  }
  // A late answer is as good as its numbers are; the index sees to that.
  if (reply.ok()) index_->Apply(name, *reply, sent, executor_->Now());
  Next(name, number, reply.ok() ? Duration(0) : options_.retry_after);
}

// Polls again unless a later poll is under way by then.
void Poller::Next(const std::string& name, uint64_t number, Duration after) {
  auto task = [weak = weak_from_this(), name, number] {
    auto self = weak.lock();
    if (!self) return;
    {
      std::lock_guard lock(self->mutex_);
      if (self->servers_[name].number != number) return;
    }
    self->Poll(name);
  };
  if (after == Duration(0)) {
    executor_->Post(std::move(task));
  } else {
    executor_->PostAfter(after, std::move(task));
  }
}

}  // namespace tamis
