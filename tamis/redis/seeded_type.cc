#include "tamis/redis/seeded_type.h"

#include <optional>
#include <string>
#include <utility>

#include "tamis/redis/data_type.h"
#include "tamis/redis/seeded_chain.h"

namespace tamis::redis {
namespace {

struct Methods {
  using Value = SeededChain;
  static constexpr char kName[] = "bloomfltr";
  static constexpr int kEncoding = 1;

  static Result<SeededChain> Decode(Ctx*, RdbFields& fields, int encoding) {
    if (encoding != kEncoding) {
      return Status(StatusCode::kDataLoss,
                    "Bloom filter: saved by a later version of valkey-bloom, or one before 1.0");
    }
    SeededChain::Parts parts;
    const uint64_t links = fields.Unsigned();
    parts.expansion = fields.Unsigned();
    parts.error_rate = fields.Double();
    parts.tightening = fields.Double();
    parts.random_seed = fields.Unsigned() == 1;
    // Nothing is allocated for what a count promises.
    for (uint64_t i = 0; i < links && !fields.failed(); ++i) {
      SeededChain::Link link;
      link.bytes = fields.Bytes();
      link.capacity = fields.Unsigned();
      link.size = i + 1 == links ? fields.Unsigned() : link.capacity;  // all but the last are full
      if (fields.failed()) break;
      parts.links.push_back(std::move(link));
    }
    if (fields.failed()) return Status(StatusCode::kDataLoss, "Bloom filter: the value ends early");
    return SeededChain::FromParts(std::move(parts));
  }

  static void Encode(RedisModuleIO* io, const SeededChain& chain) {
    server.SaveUnsigned(io, chain.links().size());
    server.SaveUnsigned(io, chain.expansion());
    server.SaveDouble(io, chain.error_rate());
    server.SaveDouble(io, chain.tightening());
    server.SaveUnsigned(io, chain.random_seed() ? 1 : 0);
    for (const SeededChain::Link& link : chain.links()) {
      server.SaveStringBuffer(io, reinterpret_cast<const char*>(link.bytes.data()),
                              link.bytes.size());
      server.SaveUnsigned(io, link.capacity);
    }
    server.SaveUnsigned(io, chain.links().back().size);
  }

  static void Rewrite(RedisModuleIO* io, String* key, const SeededChain& chain) {
    const std::string dump = chain.Dump();
    server.EmitAOF(io, "BF.LOAD", "sb", key, dump.data(), dump.size());
  }
  static void Digest(RedisModuleDigest* digest, const SeededChain& chain) {
    const std::string dump = chain.Dump();
    server.DigestAddStringBuffer(digest, dump.data(), dump.size());
  }
  static std::optional<SeededChain> Copy(const SeededChain& chain) { return chain.Copy(); }
  static size_t MemoryBytes(const SeededChain& chain) {
    size_t bytes = chain.SizeBytes();
    for (const SeededChain::Link& link : chain.links()) {
      bytes += AllocatedBytes(link.bytes.size()) - link.bits / 8;
    }
    return bytes;
  }
  static size_t Arrays(const SeededChain& chain) { return chain.links().size(); }
  static ByteArray& Array(SeededChain& chain, size_t i) { return chain.mutable_links()[i].bytes; }
};

}  // namespace

int RegisterSeededType(Ctx* ctx) { return RegisterDataType<Methods>(ctx); }

}  // namespace tamis::redis
