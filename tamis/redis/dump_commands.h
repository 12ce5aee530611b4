// TAMIS.SCANDUMP and TAMIS.LOADCHUNK: a filter, given and taken in parts.
#pragma once

#include "tamis/redis/command.h"

namespace tamis::redis {

void ScanDump(Ctx* ctx, Words words);
void LoadChunk(Ctx* ctx, Words words);

}  // namespace tamis::redis
