// TAMIS.REBUILD: a new filter is filled beside the old one, and takes its place.
#pragma once

#include "tamis/redis/command.h"

namespace tamis::redis {

void Rebuild(Ctx* ctx, Words words);

}  // namespace tamis::redis
