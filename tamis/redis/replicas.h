// How many replicas follow this primary, so that it can tell whether it is still the one.
#pragma once

#include "tamis/redis/server.h"

namespace tamis::redis {

// Tells of replicas that come and go.
int SubscribeToReplicas(Ctx* ctx);

// Whether `count` replicas have acknowledged within `seconds`. What the server says is asked for
// anew ten times a second at most; how old it is, is taken into account.
bool ReplicasFollow(Ctx* ctx, long long count, long long seconds);

}  // namespace tamis::redis
