#include "tamis/redis/bloom_type.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "tamis/redis/rdb_fields.h"

namespace tamis::redis {

RedisModuleType* bloom_type = nullptr;

namespace {

constexpr char kTypeName[] = "MBbloom--";
constexpr int kEncoding = 4;

Result<BloomChain> Decode(RdbFields& fields, int encoding, uint64_t greatest_bytes) {
  if (encoding < 2) {
    return Status(StatusCode::kDataLoss,
                  "Bloom filter: of a version whose hash of 32 bits is not read; fill a new one");
  }
  BloomChain::Parts parts;
  parts.size = fields.Unsigned();
  const uint64_t links = fields.Unsigned();
  const uint64_t options = fields.Unsigned();
  const uint64_t growth = encoding >= 4 ? fields.Unsigned() : 2;
  // What does not fit its place is out of range all the more.
  parts.options = static_cast<uint32_t>(std::min<uint64_t>(options, ~uint32_t{0}));
  parts.growth = static_cast<uint32_t>(std::min<uint64_t>(growth, ~uint32_t{0}));
  for (uint64_t i = 0; i < links && !fields.failed(); ++i) {
    BloomChain::Link link;
    link.entries = fields.Unsigned();
    link.error_rate = fields.Double();
    link.hashes = static_cast<uint32_t>(std::min<uint64_t>(fields.Unsigned(), ~uint32_t{0}));
    link.bits_per_entry = fields.Double();
    link.bits = fields.Unsigned();
    link.n2 = static_cast<uint8_t>(std::min<uint64_t>(fields.Unsigned(), 255));
    link.bytes = fields.Bytes();
    link.size = fields.Unsigned();
    if (fields.failed()) break;
    parts.links.push_back(std::move(link));
  }
  if (fields.failed()) return Status(StatusCode::kDataLoss, "Bloom filter: the value ends early");
  return BloomChain::FromParts(std::move(parts), greatest_bytes);
}

void* Load(RedisModuleIO* io, int encoding) noexcept {
  try {
    RdbFields fields(io);
    // Only a server's own data may lack bytes: half of a filter that is being loaded in chunks.
    const bool loading =
        (server.GetContextFlags(server.GetContextFromIO(io)) & kFlagLoading) != 0;
    auto chain = Decode(fields, encoding, loading ? ~uint64_t{0} : 0);
    if (chain.ok()) return new BloomChain(std::move(*chain));
    server.LogIOError(io, "warning", "%s", chain.status().message().c_str());
  } catch (const std::bad_alloc&) {
    server.LogIOError(io, "warning", "memory does not suffice for the Bloom filter");
  }
  return nullptr;
}

void Save(RedisModuleIO* io, void* value) noexcept {
  const auto& chain = *static_cast<const BloomChain*>(value);
  server.SaveUnsigned(io, chain.size());
  server.SaveUnsigned(io, chain.links().size());
  server.SaveUnsigned(io, chain.options());
  server.SaveUnsigned(io, chain.growth());
  uint64_t present = chain.present();
  for (const BloomChain::Link& link : chain.links()) {
    server.SaveUnsigned(io, link.entries);
    server.SaveDouble(io, link.error_rate);
    server.SaveUnsigned(io, link.hashes);
    server.SaveDouble(io, link.bits_per_entry);
    server.SaveUnsigned(io, link.bits);
    server.SaveUnsigned(io, link.n2);
    const uint64_t size = std::min<uint64_t>(link.bytes.size(), present);
    present -= size;
    server.SaveStringBuffer(io, reinterpret_cast<const char*>(link.bytes.data()), size);
    server.SaveUnsigned(io, link.size);
  }
}

void Rewrite(RedisModuleIO* io, String* key, void* value) noexcept {
  const auto& chain = *static_cast<const BloomChain*>(value);
  const std::string header = chain.Header();
  server.EmitAOF(io, "BF.LOADCHUNK", "slb", key, 1ll, header.data(), header.size());
  for (uint64_t at = 0; at < chain.present();) {
    const std::string_view chunk = chain.Chunk(at).substr(0, chain.present() - at);
    at += chunk.size();
    server.EmitAOF(io, "BF.LOADCHUNK", "slb", key, static_cast<long long>(at + 1), chunk.data(),
                   chunk.size());
  }
}

void Digest(RedisModuleDigest* digest, void* value) noexcept {
  const auto& chain = *static_cast<const BloomChain*>(value);
  const std::string header = chain.Header();
  server.DigestAddStringBuffer(digest, header.data(), header.size());
  server.DigestAddLongLong(digest, static_cast<long long>(chain.present()));
  for (uint64_t at = 0; !chain.Chunk(at).empty(); at += chain.Chunk(at).size()) {
    server.DigestAddStringBuffer(digest, chain.Chunk(at).data(), chain.Chunk(at).size());
  }
  server.DigestEndSequence(digest);
}

size_t MemoryUsage(const void* value) noexcept {
  return static_cast<const BloomChain*>(value)->SizeBytes();
}

// The server frees what costs more than 64 in the background.
size_t FreeEffort(String*, const void* value) noexcept {
  return 1 + static_cast<const BloomChain*>(value)->SizeBytes() / 4096;
}

void Free(void* value) noexcept { delete static_cast<BloomChain*>(value); }

void* Copy(String*, String*, const void* value) noexcept {
  try {
    auto copy = static_cast<const BloomChain*>(value)->Copy();
    if (copy) return new BloomChain(std::move(*copy));
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

}  // namespace

int RegisterBloomType(Ctx* ctx) {
  TypeMethods methods{};
  methods.version = 4;
  methods.rdb_load = Load;
  methods.rdb_save = Save;
  methods.aof_rewrite = Rewrite;
  methods.mem_usage = MemoryUsage;
  methods.digest = Digest;
  methods.free = Free;
  methods.free_effort = FreeEffort;
  methods.copy = Copy;
  bloom_type = server.CreateDataType(ctx, kTypeName, kEncoding, &methods);
  return bloom_type == nullptr ? kErr : kOk;
}

}  // namespace tamis::redis
