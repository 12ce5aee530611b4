// TAMIS.UNION: a filter of all that several hold.
#pragma once

#include "tamis/redis/command.h"

namespace tamis::redis {

void Unite(Ctx* ctx, Words words);

}  // namespace tamis::redis
