// The data type MBbloomCF, whose values are CuckooChains.
#pragma once

#include "tamis/redis/server.h"

namespace tamis::redis {

int RegisterCuckooType(Ctx* ctx);

}  // namespace tamis::redis
