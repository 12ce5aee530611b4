// CF.*: cuckoo filters as clients of RedisBloom know them (docs/REDIS.md).
#pragma once

#include <span>

#include "tamis/redis/command.h"

namespace tamis::redis {

std::span<const Command> CuckooCommands();

}  // namespace tamis::redis
