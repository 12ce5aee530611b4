#include "tamis/redis/cuckoo_type.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tamis/redis/chain_type.h"
#include "tamis/redis/cuckoo_chain.h"
#include "tamis/redis/data_type.h"

namespace tamis::redis {
namespace {

struct Methods {
  using Value = CuckooChain;
  static constexpr char kName[] = "MBbloomCF";
  static constexpr int kEncoding = 4;

  static Result<CuckooChain> Decode(Ctx* ctx, RdbFields& fields, int encoding) {
    CuckooChain::Parts parts;
    const uint64_t tables = fields.Unsigned();
    parts.buckets = fields.Unsigned();
    parts.items = fields.Unsigned();
    // Defaults for fields that older versions did not save.
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
        return Status(StatusCode::kDataLoss,
                      "Cuckoo filter: a table of other buckets than its place has");
      }
      ByteArray table = fields.Bytes();
      if (fields.failed()) break;
      parts.tables.push_back(std::move(table));
    }
    if (fields.failed())
      return Status(StatusCode::kDataLoss, "Cuckoo filter: the value ends early");
    return CuckooChain::FromParts(std::move(parts), GreatestPartialBytes(ctx));
  }

  static void Encode(RedisModuleIO* io, const CuckooChain& chain) {
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

  static void Rewrite(RedisModuleIO* io, String* key, const CuckooChain& chain) {
    EmitChunks(io, key, "CF.LOADCHUNK", chain);
  }
  static void Digest(RedisModuleDigest* digest, const CuckooChain& chain) {
    DigestChain(digest, chain);
  }
  static std::optional<CuckooChain> Copy(const CuckooChain& chain) { return chain.Copy(); }
  static size_t MemoryBytes(const CuckooChain& chain) {
    return ChainMemory(chain.SizeBytes(), chain.tables());
  }
  static size_t Arrays(const CuckooChain& chain) { return chain.tables().size(); }
  static ByteArray& Array(CuckooChain& chain, size_t i) { return chain.mutable_tables()[i]; }
};

}  // namespace

int RegisterCuckooType(Ctx* ctx) { return RegisterDataType<Methods>(ctx); }

}  // namespace tamis::redis
