// The list of keys whose filter or rebuild is trusted. When trust ends for all of them at once, no
// command opens the keys, so the server would not notify the clients that WATCH one or cache its
// answers. So the module tells the server that each listed key has changed.
//
// A listed key without a filter does no harm. Threads: the server's main thread only.
#pragma once

#include <string_view>

#include "tamis/redis/server.h"

namespace tamis::redis {

// kErr when the server refuses.
int RegisterTrustedKeys(Ctx* ctx);

// Before a filter, or a rebuild, becomes sound. Throws std::bad_alloc; then it must not.
void ListTrustedKey(Ctx* ctx, const String* key);  // a key of the selected database
void ListTrustedKey(int database, std::string_view key);
// The value has left its name.
void UnlistTrustedKey(int database, std::string_view key) noexcept;
// Tells the server that each of them has changed, and lists none any more.
void SignalTrustedKeys(Ctx* ctx) noexcept;

}  // namespace tamis::redis
