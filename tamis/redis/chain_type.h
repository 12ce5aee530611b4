// What the data types of both chains have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/redis/server.h"

namespace tamis::redis {

// How large a chain may be whose bytes are not all there: only a server's own data may lack some,
// half of a filter that is being loaded in chunks.
inline uint64_t GreatestPartialBytes(Ctx* ctx) {
  return (server.GetContextFlags(ctx) & kFlagLoading) != 0 ? ~uint64_t{0} : 0;
}

// A header and what has come of the chunks.
template <class Chain>
void EmitChunks(RedisModuleIO* io, String* key, const char* command, const Chain& chain) {
  const std::string header = chain.Header();
  server.EmitAOF(io, command, "slb", key, 1ll, header.data(), header.size());
  for (uint64_t at = 0; at < chain.present();) {
    const std::string_view chunk = chain.Chunk(at).substr(0, chain.present() - at);
    at += chunk.size();
    const uint64_t iterator = at + 1;
    server.EmitAOF(io, command, "slb", key, static_cast<long long>(iterator), chunk.data(),
                   chunk.size());
  }
}

template <class Chain>
void DigestChain(RedisModuleDigest* digest, const Chain& chain) {
  const std::string header = chain.Header();
  server.DigestAddStringBuffer(digest, header.data(), header.size());
  server.DigestAddLongLong(digest, static_cast<long long>(chain.present()));
  for (uint64_t at = 0; !chain.Chunk(at).empty(); at += chain.Chunk(at).size()) {
    server.DigestAddStringBuffer(digest, chain.Chunk(at).data(), chain.Chunk(at).size());
  }
}

}  // namespace tamis::redis
