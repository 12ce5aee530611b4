#include "tamis/routing/routed_servers.h"

namespace tamis {

std::shared_ptr<RoutedServer> RoutedServers::Named(const std::string& name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  auto server = std::make_shared<RoutedServer>();
  const auto free = std::ranges::find(by_number_, nullptr);
  server->number = static_cast<uint32_t>(free - by_number_.begin());
  if (free == by_number_.end()) {
    lease_until_.resize(server->number + size_t{1}, Time::min());
    by_number_.push_back(nullptr);
  }
  by_name_.emplace(name, server);
  by_number_[server->number] = server.get();
  return server;
}

std::shared_ptr<RoutedServer> RoutedServers::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void RoutedServers::Forget(const std::string& name) {
  const auto found = by_name_.find(name);
  by_number_[found->second->number] = nullptr;
  by_name_.erase(found);
}

bool RoutedServers::ExtendLease(const RoutedServer& server, Time until) {
  Time& lease = lease_until_[server.number];
  const bool revived = lease <= latest_ && until > latest_;
  lease = std::max(lease, until);
  return revived;
}

void RoutedServers::AddWithoutLease(uint32_t table_id, Time now, RegionBits* may) const {
  for (const RoutedServer* server : by_number_) {
    if (server == nullptr || HasLease(*server, now)) continue;
    for (const auto& [id, region] : server->regions) {
      if (region.table_id == table_id) may->Set(region.slot);
    }
  }
}

}  // namespace tamis
