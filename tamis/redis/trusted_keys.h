// The keys whose filter, or whose rebuild, is sound: the server tells clients that WATCH a key, or
// that cache what was read of it, only of keys that a command opens, and the end of all trust opens
// none. So it is told of each of these.
//
// A key that is listed and lies no filter under is harmless. All from the server's main thread.
#pragma once

#include <string_view>

#include "tamis/redis/server.h"

namespace tamis::redis {

// kErr when the server refuses.
int RegisterTrustedKeys(Ctx* ctx);

// Before a filter, or a rebuild, becomes sound. Throws std::bad_alloc; then it must not.
void ListTrustedKey(Ctx* ctx, const String* key);  // of the selected database
void ListTrustedKey(int database, std::string_view key);
// The value has left its name.
void UnlistTrustedKey(int database, std::string_view key) noexcept;
// Tells the server that each of them has changed, and lists none any more.
void SignalTrustedKeys(Ctx* ctx) noexcept;

}  // namespace tamis::redis
