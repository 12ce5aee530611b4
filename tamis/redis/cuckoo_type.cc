#include "tamis/redis/cuckoo_type.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "tamis/redis/rdb_fields.h"

namespace tamis::redis {

RedisModuleType* cuckoo_type = nullptr;

namespace {

constexpr char kTypeName[] = "MBbloomCF";
constexpr int kEncoding = 4;

Result<CuckooChain> Decode(RdbFields& fields, int encoding, uint64_t greatest_bytes) {
  CuckooChain::Parts parts;
  const uint64_t tables = fields.Unsigned();
  parts.buckets = fields.Unsigned();
  parts.items = fields.Unsigned();
  // What older versions did not save.
  parts.bucket_size = 2;
  parts.max_iterations = 20;
  parts.expansion = 1;
  if (encoding >= 4) {
    parts.deletes = fields.Unsigned();
    parts.bucket_size = fields.Unsigned();
    parts.max_iterations = fields.Unsigned();
    parts.expansion = fields.Unsigned();
  }
  uint64_t buckets = parts.buckets;
  for (uint64_t i = 0; i < tables && !fields.failed(); ++i) {
    // A product that does not fit is refused with the parts.
    if (i > 0) buckets *= parts.expansion;
    if (encoding >= 4 && fields.Unsigned() != buckets && !fields.failed()) {
      return Status(StatusCode::kDataLoss, "Cuckoo filter: a table of other buckets than its place has");
    }
    ByteArray table = fields.Bytes();
    if (fields.failed()) break;
    parts.tables.push_back(std::move(table));
  }
  if (fields.failed()) return Status(StatusCode::kDataLoss, "Cuckoo filter: the value ends early");
  return CuckooChain::FromParts(std::move(parts), greatest_bytes);
}

void* Load(RedisModuleIO* io, int encoding) noexcept {
  try {
    RdbFields fields(io);
    // Only a server's own data may lack bytes: half of a filter that is being loaded in chunks.
    const bool loading =
        (server.GetContextFlags(server.GetContextFromIO(io)) & kFlagLoading) != 0;
    auto chain = Decode(fields, encoding, loading ? ~uint64_t{0} : 0);
    if (chain.ok()) return new CuckooChain(std::move(*chain));
    server.LogIOError(io, "warning", "%s", chain.status().message().c_str());
  } catch (const std::bad_alloc&) {
    server.LogIOError(io, "warning", "memory does not suffice for the cuckoo filter");
  }
  return nullptr;
}

void Save(RedisModuleIO* io, void* value) noexcept {
  const auto& chain = *static_cast<const CuckooChain*>(value);
  server.SaveUnsigned(io, chain.tables().size());
  server.SaveUnsigned(io, chain.buckets());
  server.SaveUnsigned(io, chain.items());
  server.SaveUnsigned(io, chain.deletes());
  server.SaveUnsigned(io, chain.bucket_size());
  server.SaveUnsigned(io, chain.max_iterations());
  server.SaveUnsigned(io, chain.expansion());
  uint64_t present = chain.present();
  for (size_t i = 0; i < chain.tables().size(); ++i) {
    const ByteArray& table = chain.tables()[i];
    const uint64_t size = std::min<uint64_t>(table.size(), present);
    present -= size;
    server.SaveUnsigned(io, chain.Buckets(i));
    server.SaveStringBuffer(io, reinterpret_cast<const char*>(table.data()), size);
  }
}

void Rewrite(RedisModuleIO* io, String* key, void* value) noexcept {
  const auto& chain = *static_cast<const CuckooChain*>(value);
  const std::string header = chain.Header();
  server.EmitAOF(io, "CF.LOADCHUNK", "slb", key, 1ll, header.data(), header.size());
  for (uint64_t at = 0; at < chain.present();) {
    const std::string_view chunk = chain.Chunk(at).substr(0, chain.present() - at);
    at += chunk.size();
    server.EmitAOF(io, "CF.LOADCHUNK", "slb", key, static_cast<long long>(at + 1), chunk.data(),
                   chunk.size());
  }
}

void Digest(RedisModuleDigest* digest, void* value) noexcept {
  const auto& chain = *static_cast<const CuckooChain*>(value);
  const std::string header = chain.Header();
  server.DigestAddStringBuffer(digest, header.data(), header.size());
  server.DigestAddLongLong(digest, static_cast<long long>(chain.present()));
  for (uint64_t at = 0; !chain.Chunk(at).empty(); at += chain.Chunk(at).size()) {
    server.DigestAddStringBuffer(digest, chain.Chunk(at).data(), chain.Chunk(at).size());
  }
  server.DigestEndSequence(digest);
}

size_t MemoryUsage(const void* value) noexcept {
  return static_cast<const CuckooChain*>(value)->SizeBytes();
}

// The server frees what costs more than 64 in the background.
size_t FreeEffort(String*, const void* value) noexcept {
  return 1 + static_cast<const CuckooChain*>(value)->SizeBytes() / 4096;
}

void Free(void* value) noexcept { delete static_cast<CuckooChain*>(value); }

void* Copy(String*, String*, const void* value) noexcept {
  try {
    auto copy = static_cast<const CuckooChain*>(value)->Copy();
    if (copy) return new CuckooChain(std::move(*copy));
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

}  // namespace

int RegisterCuckooType(Ctx* ctx) {
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
  cuckoo_type = server.CreateDataType(ctx, kTypeName, kEncoding, &methods);
  return cuckoo_type == nullptr ? kErr : kOk;
}

}  // namespace tamis::redis
