// The data type MBbloom--, whose values are BloomChains.
#pragma once

#include "tamis/redis/server.h"

namespace tamis::redis {

int RegisterBloomType(Ctx* ctx);

}  // namespace tamis::redis
