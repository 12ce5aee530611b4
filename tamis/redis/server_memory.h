// All memory of the module is the server's, so that maxmemory and INFO count it: operator new is
// its allocator as soon as the module is loaded, and so are byte arrays.
#pragma once

namespace tamis::redis {

// REQUIRES: server.Resolve() was called.
void UseServerMemory();

}  // namespace tamis::redis
