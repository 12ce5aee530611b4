// How many replicas follow this primary, so that it can tell whether it is still the one.
#pragma once

#include "tamis/redis/server.h"

namespace tamis::redis {

// Tells of replicas that come and go.
int SubscribeToReplicas(Ctx* ctx);

// Whether `count` replicas have acknowledged within `seconds`. The server's report is read at most
// ten times a second; its age is taken into account.
bool ReplicasFollow(Ctx* ctx, long long count, long long seconds);

}  // namespace tamis::redis
