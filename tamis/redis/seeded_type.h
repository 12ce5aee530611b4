// The data type of SeededChain: that of valkey-bloom, whose values it reads and writes.
#pragma once

#include "tamis/redis/server.h"

namespace tamis::redis {

int RegisterSeededType(Ctx* ctx);  // kErr when the server refuses

}  // namespace tamis::redis
