// The data type of our own: how the server saves, loads, copies and frees a TrustedFilter; and who
// may be believed.
#pragma once

#include "tamis/redis/server.h"
#include "tamis/redis/trusted_filter.h"

namespace tamis::redis {

extern RedisModuleType* tamis_type;

int RegisterTamisType(Ctx* ctx);

// The present time of trust: a new one begins with each change of role.
uint64_t TimeOfTrust();
// Believes a filter that was trusted where it came from, if this server may: it is loading its own
// files and the settings say that they lack nothing, or it is a replica, whose answers are bound by
// a setting of their own.
void TrustLoaded(Ctx* ctx, TrustedFilter* filter);
// Whether a "no" of the filter may be believed on this server now.
bool Believed(Ctx* ctx, const TrustedFilter& filter);

}  // namespace tamis::redis
