#include "tamis/redis/tamis_type.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tamis/redis/clock.h"
#include "tamis/redis/data_type.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/trust.h"
#include "tamis/redis/trusted_keys.h"

namespace tamis::redis {

namespace {

struct Methods {
  using Value = TrustedFilter;
  static constexpr char kName[] = "TamisFltr";
  static constexpr int kEncoding = 1;

  // A header and pieces. Nothing is allocated for what the header promises, only for what comes.
  static Result<TrustedFilter> Decode(Ctx* ctx, RdbFields& fields, int encoding) {
    const auto bad = [](const char* why) { return Status(StatusCode::kDataLoss, why); };
    if (encoding != kEncoding) return bad("filter: saved by a later version of the module");
    const auto text = [](const ByteArray& bytes) {
      return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    const ByteArray header = fields.Bytes();
    if (fields.failed()) return bad("filter: the value ends early");
    auto filter = TrustedFilter::FromHeader(text(header), ~uint64_t{0});
    if (!filter.ok()) return filter.status();
    const uint64_t pieces = fields.Unsigned();
    for (uint64_t i = 0; i < pieces && !fields.failed(); ++i) {
      const ByteArray piece = fields.Bytes();
      if (fields.failed()) break;
      if (piece.size() == 0) return bad("filter: an empty piece");
      const Status status = filter->AppendChunk(text(piece));
      if (!status.ok()) return status;
    }
    if (fields.failed()) return bad("filter: the value ends early");
    if (const String* name = fields.key()) ListTrustedKey(fields.database(), TextOf(name));
    TrustLoaded(ctx, &*filter);
    if (const String* name = fields.key(); name != nullptr && !LoadsFiles(ctx)) {
      DisownInLog(ctx, fields.database(), TextOf(name), *filter);
    }
    return filter;
  }

  static void Encode(RedisModuleIO* io, const TrustedFilter& filter) {
    const auto [header, bytes] = filter.Save(TrustEpochToSave(), SavesLog(), PresentMoment());
    server.SaveStringBuffer(io, header.data(), header.size());
    server.SaveUnsigned(io, (bytes.size() + kPiece - 1) / kPiece);
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      server.SaveStringBuffer(io, bytes.data() + at, std::min(kPiece, bytes.size() - at));
    }
  }

  static void Rewrite(RedisModuleIO* io, String* key, const TrustedFilter& filter) {
    const auto [header, bytes] = filter.Save(TrustEpochToSave(), SavesLog(), PresentMoment());
    server.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, 0ll, header.data(), header.size());
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const size_t position = at + 1;
      server.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, static_cast<long long>(position),
                     bytes.data() + at, std::min(kPiece, bytes.size() - at));
    }
  }

  static void Digest(RedisModuleDigest* digest, const TrustedFilter& filter) {
    const std::string header = filter.HeaderToCompare();
    const std::string bytes = filter.Save(kNoTrustEpoch).bytes;
    server.DigestAddStringBuffer(digest, header.data(), header.size());
    server.DigestAddStringBuffer(digest, bytes.data(), bytes.size());
  }

  static std::optional<TrustedFilter> Copy(const TrustedFilter& filter) {
    TrustedFilter copy = filter;
    // Two that are changed apart cannot both be right.
    if (!faults.copies_are_believed) copy.Doubt();
    copy.EndDump();
    return copy;
  }

  // The filter misses adds that were sent to its name while it was elsewhere.
  static void Unlinked(int database, std::string_view name, TrustedFilter& filter) {
    UnlistTrustedKey(database, name);
    if (!faults.moved_is_believed) filter.Doubt();
  }

  // Large arrays have pages of their own, which defragmentation does not move.
  static size_t MemoryBytes(const TrustedFilter& filter) {
    return filter.SizeBytes(AllocatedBytes);
  }
  static size_t Arrays(const TrustedFilter&) { return 0; }
  static ByteArray& Array(TrustedFilter&, size_t) { std::abort(); }

 private:
  static constexpr size_t kPiece = TrustedFilter::kGreatestChunk;
};

}  // namespace

int RegisterTamisType(Ctx* ctx) { return RegisterDataType<Methods>(ctx); }

}  // namespace tamis::redis
