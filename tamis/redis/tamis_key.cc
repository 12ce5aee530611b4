#include "tamis/redis/tamis_key.h"

namespace tamis::redis {

bool Whole(Ctx* ctx, TamisKey& key) {
  if (key.get() != nullptr && !key->partial()) return true;
  server.ReplyWithError(ctx, key.missing() ? kNotFound : key.other_type() ? kWrongType : kPartial);
  return false;
}

bool MarkCanBe(Ctx* ctx, const String* mark) {
  if (TextOf(mark).size() <= 1024) return true;
  server.ReplyWithError(ctx, "ERR a mark has at most 1024 bytes");
  return false;
}

}  // namespace tamis::redis
