// The data type MBbloomCF: how the server saves, loads, copies and frees a CuckooChain.
#pragma once

#include "tamis/redis/cuckoo_chain.h"
#include "tamis/redis/server.h"

namespace tamis::redis {

extern RedisModuleType* cuckoo_type;

int RegisterCuckooType(Ctx* ctx);

}  // namespace tamis::redis
