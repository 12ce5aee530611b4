// The data type of our own: how the server saves, loads, copies and frees a TrustedFilter.
#pragma once

#include "tamis/redis/server.h"
#include "tamis/redis/trusted_filter.h"

namespace tamis::redis {

int RegisterTamisType(Ctx* ctx);

}  // namespace tamis::redis
