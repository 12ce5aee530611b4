#include "tamis/query/poller.h"

#include <algorithm>
#include <set>

#include "tamis/base/answers.h"
#include "tamis/base/exception_status.h"

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

void Poller::Leave(Duration patience) {
  // A server that is not told, since memory does not suffice, ends the lease when its time is over.
  (void)WithoutExceptions([&] {
    std::vector<std::shared_ptr<RegionServer>> stubs;
    pb::PollRequest request;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [name, server] : servers_) {
        request.set_coordinator(index_->NextPoll(name, Duration(0)).coordinator());
        index_->Forget(name, executor_->Now());
        stubs.push_back(server.stub);
      }
    }
    request.set_leaves(true);
    Answers<Result<pb::PollReply>> answers(executor_);
    for (const auto& stub : stubs) stub->Poll(request, answers.To(0));
    const Wait wait{.deadline = executor_->Now() + patience};
    for (size_t answered = 0; answered < stubs.size(); ++answered) {
      if (!answers.Next(wait).has_value()) break;
    }
    return Status::Ok();
  });
}

void Poller::LookForServers() {
  const Call call(this);
  if (!call) return;
  looking_ = true;
  // When memory is short, the list comes with the next look, or the next search begins to look
  // again (KeepLooking).
  (void)WithoutExceptions([this] {
    cluster_->ListServers([weak = weak_from_this()](Result<std::vector<ServerInfo>> servers) {
      auto self = weak.lock();
      if (self && servers.ok()) self->TakeServers(*servers);
    });
    return Status::Ok();
  });
  const Status posted = WithoutExceptions([this] {
    executor_->PostAfter(options_.look_for_servers, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->LookForServers();
    });
    return Status::Ok();
  });
  looking_ = posted.ok();
}

std::vector<std::string> Poller::Forgotten() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (auto& [name, server] : servers_) {
    if (server.due > executor_->Now() - options_.margin) continue;
    server.watched = false;
    names.push_back(name);
  }
  return names;
}

void Poller::TakeServers(const std::vector<ServerInfo>& servers) {
  const Call call(this);
  if (!call) return;
  std::set<std::string> names;
  for (const ServerInfo& info : servers) names.insert(info.name);
  std::vector<std::string> added;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(servers_, [&](const auto& entry) {
      if (names.contains(entry.first)) return false;
      index_->Forget(entry.first, executor_->Now());
      return true;
    });
    for (const std::string& name : names) {
      auto [entry, is_new] = servers_.try_emplace(name);
      if (!is_new) continue;
      entry->second.due = executor_->Now();
      entry->second.name = name;
      entry->second.stub = cluster_->Server(name);
      added.push_back(name);
    }
  }
  for (const std::string& name : added) Poll(name);
  for (const std::string& name : Forgotten()) Poll(name);
}

void Poller::Poll(const std::string& name) {
  const Call call(this);
  if (!call) return;
  std::shared_ptr<RegionServer> stub;
  pb::PollRequest request;
  uint64_t number;
  const Time sent = executor_->Now();
  {
    std::lock_guard lock(mutex_);
    auto found = servers_.find(name);
    if (found == servers_.end()) return;  // gone meanwhile
    Server& server = found->second;
    stub = server.stub;
    request = index_->NextPoll(name, options_.wait);
    number = ++server.number;
    server.under_way = true;
    server.sent = sent;
    server.due = sent + options_.wait + options_.margin;
    server.request = request;
    if (!server.watched) {
      server.watched = true;
      WatchAfter(name, options_.wait + options_.margin);
    }
  }
  stub->Poll(request, [weak = weak_from_this(), name, number, sent](Result<pb::PollReply> reply) {
    auto self = weak.lock();
    if (!self) return;
    // The caller may be the server's own thread, so no exception may leave. When memory is short,
    // the polling of this server ends here, and begins again with the next look for servers
    // (Forgotten).
    (void)WithoutExceptions([&] {
      self->OnReply(name, number, sent, std::move(reply));
      return Status::Ok();
    });
  });
}

// A poll that is never answered must not end the polling: one task for each server watches for
// that.
void Poller::WatchAfter(const std::string& name, Duration delay) {
  executor_->PostAfter(delay, [weak = weak_from_this(), name] {
    if (auto self = weak.lock()) self->Look(name);
  });
}

void Poller::Look(const std::string& name) {
  uint64_t lost;
  Duration pause;
  {
    std::lock_guard lock(mutex_);
    auto found = servers_.find(name);
    if (stopped_ || found == servers_.end()) return;
    Server& server = found->second;
    server.watched = server.under_way;
    if (!server.under_way) return;
    const Duration left = server.sent + options_.wait + options_.margin - executor_->Now();
    if (left > Duration(0)) return WatchAfter(name, left);
    server.watched = false;
    server.under_way = false;
    ++failed_;
    lost = server.number;
    pause = LongerPause(&server);
    server.due = executor_->Now() + pause;
  }
  PollAfter(name, lost, pause);
}

void Poller::OnReply(const std::string& name, uint64_t number, Time sent,
                     Result<pb::PollReply> reply) {
  const Call call(this);
  if (!call) return;
  Duration pause{};
  {
    std::lock_guard lock(mutex_);
    if (!servers_.contains(name)) return;  // gone, and forgotten
  }
  // The mutex is not held, so answers of other servers do not wait for this one. A late answer does
  // no harm: GlobalIndex checks its numbers.
  const Time now = executor_->Now();
  ++(reply.ok() ? answered_ : failed_);
  if (reply.ok()) index_->Apply(name, *reply, sent, now);
  {
    std::lock_guard lock(mutex_);
    auto found = servers_.find(name);
    if (found == servers_.end()) return index_->Forget(name, now);  // gone meanwhile
    Server& server = found->second;
    if (server.number == number && server.under_way) {
      server.under_way = false;
      server.due = now;
      pause = PauseAfter(&server, reply, now);
      server.due = now + pause;
    }
  }
  if (reply.ok()) {
    for (const pb::Event& event : reply->events()) {
      if (event.kind() == pb::Event::TABLE_CHANGED) {
        on_table_(event.table_id(), event.schema_version());
      }
    }
  }
  // A poll may be answered before its call returns; then the next poll is sent from inside of that
  // call, but only to a bounded depth.
  constexpr int kDeepest = 8;
  thread_local int depth = 0;
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  };
  if (pause == Duration(0) && depth < kDeepest) {
    const Deeper deeper;
    PollAgain(name, number);
  } else {
    PollAfter(name, number, pause);
  }
}

// How long to wait before the next poll.
Duration Poller::PauseAfter(Server* server, const Result<pb::PollReply>& reply, Time now) const {
  if (!reply.ok()) return LongerPause(server);
  if (reply->next_poll_ns() > 0) {
    server->pause = Duration(0);
    const auto longest = static_cast<uint64_t>(options_.longest_pause.count());
    return Duration(std::min(reply->next_poll_ns(), longest));
  }
  // A poll that was answered at once without news would otherwise be repeated without a pause.
  const pb::PollRequest next = index_->NextPoll(server->name, options_.wait);
  if (now - server->sent < options_.wait / 2 &&
      next.SerializeAsString() == server->request.SerializeAsString()) {
    return LongerPause(server);
  }
  server->pause = Duration(0);
  return Duration(0);
}

Duration Poller::LongerPause(Server* server) const {
  server->pause = std::min(std::max(options_.pause, 2 * server->pause), options_.longest_pause);
  return server->pause;
}

void Poller::PollAfter(const std::string& name, uint64_t number, Duration pause) {
  executor_->PostAfter(pause, [weak = weak_from_this(), name, number] {
    if (auto self = weak.lock()) self->PollAgain(name, number);
  });
}

// Polls the server, unless a later poll is under way by now.
void Poller::PollAgain(const std::string& name, uint64_t number) {
  {
    std::lock_guard lock(mutex_);
    auto found = servers_.find(name);
    if (found == servers_.end() || found->second.number != number) return;
  }
  Poll(name);
}

}  // namespace tamis
