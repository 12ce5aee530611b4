// Shared by the data types of both chains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/byte_array.h"
#include "tamis/redis/server.h"
#include "tamis/redis/server_memory.h"

namespace tamis::redis {

// How large a decoded chain may be whose bytes are not all there: a filter that was being loaded in
// chunks. Only data that the server loads itself (its files, its primary's copy) may hold one;
// elsewhere (RESTORE) a chain must be whole, which 0 says.
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

inline size_t SizeOf(const ByteArray& table) { return table.size(); }
inline size_t SizeOf(const BloomChain::Link& link) { return link.bytes.size(); }

// `bytes` = what the chain holds, with the sizes of its parts as they are.
template <class Parts>
size_t ChainMemory(size_t bytes, const Parts& parts) {
  for (const auto& part : parts) bytes += AllocatedBytes(SizeOf(part)) - SizeOf(part);
  return bytes;
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
