// TAMIS.SLICE: what a server says of the slices of a window to its replicas and its log. The server
// that takes the adds begins the slices; the others begin none by themselves.
#pragma once

#include "tamis/redis/command.h"
#include "tamis/redis/tamis_key.h"

namespace tamis::redis {

void Slice(Ctx* ctx, Words words);

// To be called before a client's add: begins the present slice if the newest one is over. Returns
// nullptr, or the error where memory or tamis-max-bytes do not suffice; nothing is changed then.
const char* BeginSliceIfDue(Ctx* ctx, String* name, TrustedFilter& filter);

// Says when the newest slice of the filter began.
void ReplicateSlice(Ctx* ctx, String* name, TrustedFilter& filter);
// Says that the oldest copies of the items since that slice were erased.
void ReplicateErase(Ctx* ctx, String* name, uint64_t since, std::span<String*> items);

}  // namespace tamis::redis
