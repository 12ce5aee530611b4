#include "tamis/query/poller.h"

#include <vector>

namespace tamis {

void Poller::Start() { LookForServers(); }

Poller::Call::Call(Poller* poller) : poller_(poller) {
  std::lock_guard lock(poller_->mutex_);
  begun_ = !poller_->stopped_;
  if (begun_) ++poller_->calls_;
}

Poller::Call::~Call() {
  if (!begun_) return;
  std::lock_guard lock(poller_->mutex_);
  if (--poller_->calls_ == 0) poller_->idle_.notify_all();
}

void Poller::Stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [this] { return calls_ == 0; });
}

void Poller::LookForServers() {
  const Call call(this);
  if (!call) return;
  std::vector<std::string> lost;
  {
    std::lock_guard lock(mutex_);
    // A poll that is never answered must not end the polling.
    for (const auto& [name, server] : servers_) {
      if (executor_->Now() - server.sent >= options_.wait + options_.timeout) lost.push_back(name);
    }
  }
  for (const std::string& name : lost) Poll(name);
  cluster_->ListServers([weak = weak_from_this()](Result<std::vector<ServerInfo>> servers) {
    auto self = weak.lock();
    if (!self || !servers.ok()) return;
    const Call call(self.get());
    if (!call) return;
    for (const ServerInfo& info : *servers) {
      {
        std::lock_guard lock(self->mutex_);
        if (!self->servers_.try_emplace(info.name).second) continue;
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
  const Call call(this);
  if (!call) return;
  std::shared_ptr<RegionServer> stub;
  uint64_t number;
  const Time sent = executor_->Now();
  {
    std::lock_guard lock(mutex_);
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
