// TAMIS.*: filters whose "no" is a promise (docs/REDIS.md).
#pragma once

#include <span>

#include "tamis/redis/command.h"

namespace tamis::redis {

std::span<const Command> TamisCommands();

}  // namespace tamis::redis
