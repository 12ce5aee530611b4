// The key of a filter whose "no" is a promise, as the TAMIS.* commands open it.
#pragma once

#include "tamis/redis/command.h"
#include "tamis/redis/filter_key.h"
#include "tamis/redis/tamis_type.h"

namespace tamis::redis {

using TamisKey = FilterKey<TrustedFilter>;

// The key that a command names first.
inline TamisKey Open(Ctx* ctx, Words words, int mode) { return {ctx, words[1], mode}; }

// False, and the error is sent, unless there is a whole filter.
bool Whole(Ctx* ctx, TamisKey& key);

// False, and the error is sent, when a mark is too long.
bool MarkCanBe(Ctx* ctx, const String* mark);

}  // namespace tamis::redis
