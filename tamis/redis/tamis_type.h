// The data type of our own: how the server saves, loads, copies and frees a TrustedFilter; and who
// may be believed.
#pragma once

#include "tamis/redis/server.h"
#include "tamis/redis/trusted_filter.h"

namespace tamis::redis {

int RegisterTamisType(Ctx* ctx);

// The present time of trust: a new one begins with each change of role, and when a command that
// another server has done finds no memory here.
uint64_t TimeOfTrust();
// Begins the next one.
void DoubtAll();
// When a command that another server has done finds no memory here, the log and INFO tell it, and
// who could miss something of it is not believed: the one filter that `says_so` itself, or else all
// with GUARD, until they are trusted anew, and all of BF.* and CF.* for as long as the server
// lives. A command of somebody who is told of it is none of these.
void CommandLost(Ctx* ctx, bool says_so) noexcept;
bool ChainsBelieved();
// Whether what a command says of trust holds: not when it comes from this server's own files,
// unless the settings say that they lack nothing. The answers of a replica are bound by a setting
// of their own.
bool MayTrust(Ctx* ctx);
// Believes a filter that was trusted where it came from, and its rebuild, if it is this server's
// own or its primary's.
void TrustLoaded(Ctx* ctx, TrustedFilter* filter);
// Whether a "no" of the filter may be believed on this server now.
bool Believed(Ctx* ctx, const TrustedFilter& filter);

}  // namespace tamis::redis
