// Whether a "no" of a filter made with GUARD may be believed on this server now.
//
// Trust is bound to a trust epoch, a counter of this process: a new epoch begins when adds that
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
//   files of another server, sent by a client  no, likewise
#pragma once

#include <cstdint>
#include <string_view>

#include "tamis/redis/server.h"
#include "tamis/redis/trusted_filter.h"

namespace tamis::redis {

// Subscribes to the server's events that begin a new trust epoch. kErr when the server refuses.
int RegisterTrust(Ctx* ctx);

// An epoch in which nothing is trusted.
inline constexpr uint64_t kNoTrustEpoch = ~uint64_t{0};

// The present trust epoch.
uint64_t TrustEpoch();
// A filter that is trusted in this epoch is saved as trusted. It is kNoTrustEpoch, except while a
// primary writes its files or a first copy for a replica.
uint64_t TrustEpochToSave();
// Whether what is being saved is the base of this server's own log (AOF).
bool SavesLog();
// Begins a new trust epoch, so that no filter with GUARD is trusted any more, and tells the
// clients that WATCH or cache a key that was.
void DoubtAll(Ctx* ctx);
// To be called when memory does not suffice for a command that another server has done: its items
// are missing here. The log and INFO report it. If `says_so`, the caller has marked the one filter
// concerned, which then answers "unknown" itself. Else no filter is believed that could lack items:
// those with GUARD until they are trusted again, those of BF.* and CF.* until the server ends. Does
// nothing for a command of a client, which gets an error.
void CommandLost(Ctx* ctx, bool says_so) noexcept;
// To be called when the words of a command that another server has done are not understood here.
// `items`: the command had items, which are missing now, so no filter is believed, as above. Else
// the next command that adds to its key makes a filter with other options. Does nothing for a
// command of a client.
void CommandRefused(Ctx* ctx, bool items) noexcept;
// False once a command for the filters of BF.* and CF.* was lost or refused.
bool ChainsBelieved();
// Whether a command (TAMIS.TRUST, a COMMIT) may make a filter trusted: not while this server loads
// its own files, unless it is a primary and tamis-trust-after-restart says that they lack nothing.
bool MayTrust(Ctx* ctx);
// To be called behind the replication of a command that may have made `key` or its rebuild trusted.
// On a replica it writes TAMIS.DOUBT of the key to its own log, which then does not make the key
// trusted.
void DoubtInOwnLog(Ctx* ctx, String* key);
// Whether this server is reading its own files, or the first copy from its primary.
bool LoadsFiles(Ctx* ctx);
// To be called when a client has restored `filter`. Where its bytes are a part of another server's
// log, it writes to this server's log that the filter is not trusted, and how old its slice is; the
// log would else be read as if they were its own.
void DisownInLog(Ctx* ctx, int database, std::string_view key, const TrustedFilter& filter);
// Called for a loaded filter. Its window goes on; the time since it was saved counts if the file is
// this server's own. Trusts the filter and its rebuild again if the server that saved them trusted
// them, and the file is this server's own or its primary's.
void TrustLoaded(Ctx* ctx, TrustedFilter* filter);
// Whether a "no" of the filter may be believed on this server now.
bool Believed(Ctx* ctx, const TrustedFilter& filter);

}  // namespace tamis::redis
