#include "tamis/redis/bloom_type.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/chain_type.h"
#include "tamis/redis/data_type.h"

namespace tamis::redis {
namespace {

struct Methods {
  using Value = BloomChain;
  static constexpr char kName[] = "MBbloom--";
  static constexpr int kEncoding = 4;

  static Result<BloomChain> Decode(Ctx* ctx, RdbFields& fields, int encoding) {
    BloomChain::Parts parts;
    parts.size = fields.Unsigned();
    const uint64_t links = fields.Unsigned();
    const uint64_t options = encoding >= 2 ? fields.Unsigned() : 0;
    const uint64_t growth = encoding >= 4 ? fields.Unsigned() : 2;
    // A value that does not fit its field is out of range all the more.
    parts.options = static_cast<uint32_t>(std::min<uint64_t>(options, ~uint32_t{0}));
    parts.growth = growth;
    for (uint64_t i = 0; i < links && !fields.failed(); ++i) {
      BloomChain::Link link;
      link.entries = fields.Unsigned();
      link.error_rate = fields.Double();
      link.hashes = static_cast<uint32_t>(std::min<uint64_t>(fields.Unsigned(), ~uint32_t{0}));
      link.bits_per_entry = fields.Double();
      if (encoding >= 1) {
        link.bits = fields.Unsigned();
        link.n2 = static_cast<uint8_t>(std::min<uint64_t>(fields.Unsigned(), 255));
      } else {
        link.bits = BloomChain::BitsFor(link.entries, link.bits_per_entry);
      }
      link.bytes = fields.Bytes();
      link.size = fields.Unsigned();
      if (fields.failed()) break;
      parts.links.push_back(std::move(link));
    }
    if (fields.failed()) return Status(StatusCode::kDataLoss, "Bloom filter: the value ends early");
    return BloomChain::FromParts(std::move(parts), GreatestPartialBytes(ctx));
  }

  static void Encode(RedisModuleIO* io, const BloomChain& chain) {
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

  static void Rewrite(RedisModuleIO* io, String* key, const BloomChain& chain) {
    EmitChunks(io, key, "BF.LOADCHUNK", chain);
  }
  static void Digest(RedisModuleDigest* digest, const BloomChain& chain) {
    DigestChain(digest, chain);
  }
  static std::optional<BloomChain> Copy(const BloomChain& chain) { return chain.Copy(); }
  static size_t MemoryBytes(const BloomChain& chain) {
    return ChainMemory(chain.SizeBytes(), chain.links());
  }
  static size_t Arrays(const BloomChain& chain) { return chain.links().size(); }
  static ByteArray& Array(BloomChain& chain, size_t i) { return chain.mutable_links()[i].bytes; }
};

}  // namespace

int RegisterBloomType(Ctx* ctx) { return RegisterDataType<Methods>(ctx); }

}  // namespace tamis::redis
