// All memory of the module is the server's, so that maxmemory and INFO count it: operator new is
// its allocator as soon as the module is loaded, and so are byte arrays.
#pragma once

#include <cstddef>

#include "tamis/redis/server.h"

namespace tamis::redis {

// REQUIRES: server.Resolve() was called.
int UseServerMemory(Ctx* ctx);

// A large array that the server itself has allocated for a filter, or moved.
void ArrayTaken(void* array, size_t size);
void ArrayMoved(void* from, void* to, size_t size);

}  // namespace tamis::redis
