// How many replicas follow this primary. One that replicas do not follow may have been replaced by
// another primary without knowing.
#pragma once

#include "tamis/redis/server.h"

namespace tamis::redis {

// Subscribes to the coming and going of replicas. kErr when the server refuses.
int SubscribeToReplicas(Ctx* ctx);

// Whether `count` replicas have acknowledged within `seconds`. The server's report is read at most
// ten times a second; its age is taken into account.
bool ReplicasFollow(Ctx* ctx, long long count, long long seconds);

}  // namespace tamis::redis
