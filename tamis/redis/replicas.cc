#include "tamis/redis/replicas.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace tamis::redis {
namespace {

constexpr ServerEvent kReplicaChangeEvent = {6, 1};
constexpr long long kKeptFor = 100;  // milliseconds

long long asked_at = 0;  // milliseconds; 0 = not
// When each replica acknowledged last, at the earliest; newest first.
std::vector<long long> acknowledged;

void OnReplicaChange(Ctx*, ServerEvent, uint64_t, void*) noexcept { asked_at = 0; }

void Ask(Ctx* ctx, long long now) {
  acknowledged.clear();
  void* info = server.GetServerInfo(ctx, "replication");
  for (int i = 0;; ++i) {
    // ip=...,port=...,state=online,offset=...,lag=SECONDS
    const char* replica = server.ServerInfoGetFieldC(info, ("slave" + std::to_string(i)).c_str());
    if (replica == nullptr) break;
    const char* lag = std::strstr(replica, "lag=");
    if (std::strstr(replica, "state=online") == nullptr || lag == nullptr) continue;
    const long long seconds = std::atoll(lag + 4);
    if (seconds < 0) continue;                           // never
    acknowledged.push_back(now - (seconds + 1) * 1000);  // it was rounded down
  }
  server.FreeServerInfo(ctx, info);
  std::ranges::sort(acknowledged, std::greater<>());
  asked_at = now;
}

}  // namespace

int SubscribeToReplicas(Ctx* ctx) {
  return server.SubscribeToServerEvent(ctx, kReplicaChangeEvent, OnReplicaChange);
}

bool ReplicasFollow(Ctx* ctx, long long count, long long seconds) {
  const long long now = server.Milliseconds();
  if (asked_at == 0 || now < asked_at || now - asked_at > kKeptFor) Ask(ctx, now);
  const auto enough = static_cast<size_t>(count);
  return enough == 0 ||
         (acknowledged.size() >= enough && now - acknowledged[enough - 1] <= seconds * 1000);
}

}  // namespace tamis::redis
