#include "tamis/rocks/server_lives.h"

#include <algorithm>

namespace tamis {

class ServerLives::PresentLife : public RegionServer {
 public:
  PresentLife(std::weak_ptr<ServerLives> lives, std::string name)
      : lives_(std::move(lives)), name_(std::move(name)) {}

  void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override {
    if (auto server = Find()) return server->Mutate(request, std::move(done));
    done(Gone());
  }
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
    if (auto server = Find()) return server->Search(request, std::move(done));
    done(Gone());
  }
  void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override {
    if (auto server = Find()) return server->Poll(request, std::move(done));
    done(Gone());
  }

 private:
  std::shared_ptr<RocksRegionServer> Find() const {
    const auto lives = lives_.lock();
    return lives ? lives->FindRunning(name_) : nullptr;
  }
  Status Gone() const { return Unavailable("region server " + name_ + " is not running"); }

  const std::weak_ptr<ServerLives> lives_;
  const std::string name_;
};

ServerLives::ServerLives(Options options, ServerContext each, Executor* executor)
    : options_(std::move(options)),
      each_(std::move(each)),
      executor_(executor),
      membership_(options_.session_timeout),
      next_start_code_(options_.first_start_code),
      last_look_(executor->Now()) {}

void ServerLives::Start(const std::string& name) {
  ServerContext context = each_;
  context.name = name;
  {
    std::lock_guard lock(mutex_);
    context.start_code = next_start_code_++;
  }
  membership_.Join(name, context.start_code, executor_->Now());
  context.heartbeat = [weak = weak_from_this(), name,
                       code = context.start_code](std::function<void(bool)> done) {
    if (auto self = weak.lock()) self->SendHeartbeat(name, code, std::move(done));
  };
  context.on_expelled = [weak = weak_from_this(), name, code = context.start_code] {
    if (auto self = weak.lock()) self->ComeBack(name, code);
  };
  Executor* executor = options_.executor_of ? options_.executor_of(name) : executor_;
  auto server = RocksRegionServer::Start(std::move(context), executor);
  std::lock_guard lock(mutex_);
  servers_[name] = std::move(server);
}

void ServerLives::SendHeartbeat(const std::string& name, uint64_t start_code,
                                std::function<void(bool)> done) {
  auto deliver = [weak = weak_from_this(), name, start_code, done = std::move(done)] {
    if (auto self = weak.lock()) {
      done(self->membership_.Heartbeat(name, start_code, self->executor_->Now()));
    }
  };
  if (options_.heartbeat_link) {
    options_.heartbeat_link(name, std::move(deliver));
  } else {
    deliver();
  }
}

// Expelled, it comes back empty, as a new process would.
void ServerLives::ComeBack(const std::string& name, uint64_t start_code) {
  auto expelled = FindRunning(name);
  if (!expelled || expelled->start_code() != start_code) return;
  expelled->Kill();
  Start(name);
}

std::shared_ptr<RegionServer> ServerLives::Stub(const std::string& name) {
  return std::make_shared<PresentLife>(weak_from_this(), name);
}

std::shared_ptr<RocksRegionServer> ServerLives::Find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto found = servers_.find(name);
  return found == servers_.end() ? nullptr : found->second;
}

std::shared_ptr<RocksRegionServer> ServerLives::FindRunning(const std::string& name) const {
  auto server = Find(name);
  return server && !server->killed() ? server : nullptr;
}

std::vector<std::shared_ptr<RocksRegionServer>> ServerLives::Running() const {
  std::vector<std::shared_ptr<RocksRegionServer>> servers;
  std::lock_guard lock(mutex_);
  for (const auto& [name, server] : servers_) {
    if (!server->killed()) servers.push_back(server);
  }
  return servers;
}

std::set<std::string> ServerLives::Alive() const {
  std::set<std::string> names;
  for (const auto& server : Running()) {
    if (IsMember(server->name())) names.insert(server->name());
  }
  return names;
}

bool ServerLives::IsMember(const std::string& name, uint64_t start_code) const {
  const auto server = Find(name);
  return server && server->start_code() == start_code && IsMember(name);
}

std::vector<ServerInfo> ServerLives::Infos(const std::vector<pb::RegionRecord>& regions) const {
  std::vector<ServerInfo> infos;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, server] : servers_) {
      ServerInfo info{.name = name};
      if (server->killed()) {
        info.state = ServerInfo::State::kDead;
      } else if (server->paused()) {
        info.state = ServerInfo::State::kPaused;
      }
      info.regions = static_cast<uint64_t>(std::ranges::count_if(
          regions, [&](const auto& region) { return region.server() == info.name; }));
      infos.push_back(std::move(info));
    }
  }
  std::ranges::sort(infos, {},
                    [](const ServerInfo& info) { return std::pair(info.name.size(), info.name); });
  return infos;
}

Status ServerLives::Kill(const std::string& name) {
  auto server = Find(name);
  if (!server) return NotFound("no region server \"" + name + "\"");
  server->Kill();
  return Status::Ok();
}

Status ServerLives::Pause(const std::string& name) {
  auto server = Find(name);
  if (!server) return NotFound("no region server \"" + name + "\"");
  if (server->killed()) return FailedPrecondition("region server " + name + " is not running");
  server->Pause();
  return Status::Ok();
}

Status ServerLives::Resume(const std::string& name) {
  auto server = Find(name);
  if (!server) return NotFound("no region server \"" + name + "\"");
  if (!server->killed()) {
    server->Resume();
    return Status::Ok();
  }
  // The regions of the dead life are given to living servers once it is missed.
  Start(name);
  return Status::Ok();
}

Status ServerLives::Expel(const std::string& name) {
  if (!Find(name)) return NotFound("no region server \"" + name + "\"");
  membership_.Expel(name);
  return Status::Ok();
}

void ServerLives::ExpelSilent() {
  const Time now = executor_->Now();
  if (now - last_look_ > look_interval() + options_.session_timeout / 2) {
    // The whole process stood still, not the servers.
    membership_.Forgive(now);
  }
  last_look_ = now;
  membership_.Expire(now);
}

void ServerLives::KillAll() {
  for (const auto& server : Running()) server->Kill();
}

}  // namespace tamis
