#include "tamis/query/due_sub_ranges.h"

namespace tamis {

void DueSubRanges::Add(SubRangeAt sub_range, const RegionInfo& region) {
  auto found = servers_.find(region.server);
  if (found == servers_.end()) {
    found = servers_.emplace(region.server, Server{.name = region.server, .due = {}}).first;
  }
  Server& server = found->second;
  sub_range->region = &region;
  if (!server.due.empty() && (*server.due.begin())->range.start < sub_range->range.start) {
    server.due.insert(server.due.end(), sub_range);  // mostly they come in order
    return;
  }
  Hide(server);
  server.due.insert(sub_range);
  Show(&server);
}

void DueSubRanges::Clear() {
  by_first_.clear();
  for (auto& [name, server] : servers_) server.due.clear();
}

DueSubRanges::Server* DueSubRanges::LeastLoaded(const ServerLoads& loads) const {
  Server* least = nullptr;
  int least_load = 0;
  for (const auto& [start, server] : by_first_) {
    const int load = loads.Of(server->name);
    if (least != nullptr && load >= least_load) continue;
    least = server;
    least_load = load;
    if (load == 0) break;
  }
  return least;
}

std::vector<SubRangeAt> DueSubRanges::Begin(Server* server, size_t most, bool key_order) {
  Hide(*server);
  ++server->under_way;
  std::vector<SubRangeAt> taken;
  while (!server->due.empty() && taken.size() < most) {
    taken.push_back(*server->due.begin());
    server->due.erase(server->due.begin());
    if (key_order && !taken.back()->resume.empty()) break;
  }
  Show(server);
  return taken;
}

void DueSubRanges::End(Server* server) {
  Hide(*server);
  --server->under_way;
  Show(server);
}

void DueSubRanges::Hide(const Server& server) {
  if (!server.due.empty()) by_first_.erase((*server.due.begin())->range.start);
}

void DueSubRanges::Show(Server* server) {
  if (server->due.empty() || server->under_way >= requests_in_flight_) return;
  by_first_.emplace((*server->due.begin())->range.start, server);
}

}  // namespace tamis
