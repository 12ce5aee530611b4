// Whether a "no" of a filter made with GUARD may be believed on this server now.
//
// Trust is bound to a time of trust, a counter of this process: a new time begins when adds that
// were acknowledged elsewhere may be missing here. A file or a log records whether a filter was
// trusted; the record is believed where it was written by a primary that lost nothing:
//
//   what is read                               is believed
//   the first copy from the primary, its log   as the primary did (`tamis-trust-on-replicas`)
//   own files, written as a primary            if `tamis-trust-after-restart`
//   own files, written as a replica            no: what the primary did later is missing
//   own files, read as a replica               no: the same
//   a log whose base is a copy from elsewhere  no: Valkey 9.1 keeps the first copy as its base
//   DUMP, TAMIS.SCANDUMP, COPY                 no, also when the log that has the RESTORE is read
#pragma once

#include <cstdint>

#include "tamis/redis/server.h"
#include "tamis/redis/trusted_filter.h"

namespace tamis::redis {

// Listens to what begins another time of trust. kErr when the server refuses.
int RegisterTrust(Ctx* ctx);

// One in which nothing is trusted.
inline constexpr uint64_t kNoTime = ~uint64_t{0};

uint64_t TimeOfTrust();
// Filters that are trusted at this time are saved as trusted: kNoTime except in a primary's files
// and in first copies.
uint64_t TimeToSave();
// Whether what is being saved is the base of this server's own log (AOF).
bool SavesLog();
// Begins the next one.
void DoubtAll();
// When a command that another server has done finds no memory here, the log and INFO tell it, and
// who could miss something of it is not believed: the one filter that `says_so` itself, or else all
// with GUARD, until they are trusted anew, and all of BF.* and CF.* for as long as the server
// lives. A command of somebody who is told of it is none of these.
void CommandLost(Ctx* ctx, bool says_so) noexcept;
// The same for one whose words are not understood here, which has been answered with an error. When
// `items` were in it, they are missing; else the next one that adds to its key makes a filter of
// other size. Does nothing for a command of a client.
void CommandRefused(Ctx* ctx, bool items) noexcept;
bool ChainsBelieved();
// Whether what a command says of trust holds: not when it comes from this server's own files,
// unless the settings say that they lack nothing. The answers of a replica are bound by a setting
// of their own.
bool MayTrust(Ctx* ctx);
// Goes behind the replication of a command that may have made `key` or its rebuild trusted: in a
// replica's own log it is doubted again at once.
void DoubtInOwnLog(Ctx* ctx, String* key);
// Believes a filter that was trusted where it came from, and its rebuild, if it is this server's
// own or its primary's.
void TrustLoaded(Ctx* ctx, TrustedFilter* filter);
// Whether a "no" of the filter may be believed on this server now.
bool Believed(Ctx* ctx, const TrustedFilter& filter);

}  // namespace tamis::redis
