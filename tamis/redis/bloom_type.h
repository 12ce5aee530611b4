// The data type MBbloom--: how the server saves, loads, copies and frees a BloomChain.
#pragma once

#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/server.h"

namespace tamis::redis {

extern RedisModuleType* bloom_type;

int RegisterBloomType(Ctx* ctx);

}  // namespace tamis::redis
