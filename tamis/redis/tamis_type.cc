#include "tamis/redis/tamis_type.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tamis/redis/data_type.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/metrics.h"
#include "tamis/redis/replicas.h"
#include "tamis/redis/settings.h"

namespace tamis::redis {

namespace {

uint64_t time_of_trust = 1;
bool chains_believed = true;

void OnRoleChange(Ctx*, ServerEvent, uint64_t, void*) noexcept { DoubtAll(); }

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
    TrustLoaded(ctx, &*filter);
    return filter;
  }

  static void Encode(RedisModuleIO* io, const TrustedFilter& filter) {
    const auto [header, bytes] = filter.Save(time_of_trust);
    server.SaveStringBuffer(io, header.data(), header.size());
    server.SaveUnsigned(io, (bytes.size() + kPiece - 1) / kPiece);
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      server.SaveStringBuffer(io, bytes.data() + at, std::min(kPiece, bytes.size() - at));
    }
  }

  static void Rewrite(RedisModuleIO* io, String* key, const TrustedFilter& filter) {
    const auto [header, bytes] = filter.Save(time_of_trust);
    server.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, 0ll, header.data(), header.size());
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      const size_t position = at + 1;
      server.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, static_cast<long long>(position),
                     bytes.data() + at, std::min(kPiece, bytes.size() - at));
    }
  }

  static void Digest(RedisModuleDigest* digest, const TrustedFilter& filter) {
    const std::string header = filter.HeaderToCompare();
    const std::string bytes = filter.Save(0).bytes;
    server.DigestAddStringBuffer(digest, header.data(), header.size());
    server.DigestAddStringBuffer(digest, bytes.data(), bytes.size());
  }

  static std::optional<TrustedFilter> Copy(const TrustedFilter& filter) {
    TrustedFilter copy = filter;
    // Two that are changed apart cannot both be right.
    if (!faults.copies_are_believed) copy.Trust(0);
    if (copy.rebuild() != nullptr) copy.rebuild()->sound_time = 0;
    copy.EndDump();
    return copy;
  }

  // Large arrays have pages of their own, which defragmentation does not move.
  static size_t Arrays(const TrustedFilter&) { return 0; }
  static ByteArray& Array(TrustedFilter&, size_t) { std::abort(); }

 private:
  static constexpr size_t kPiece = TrustedFilter::kGreatestChunk;
};

}  // namespace

int RegisterTamisType(Ctx* ctx) {
  if (RegisterDataType<Methods>(ctx) != kOk || SubscribeToReplicas(ctx) != kOk) return kErr;
  return server.SubscribeToServerEvent(ctx, {kRoleChangedEvent, 1}, OnRoleChange);
}

uint64_t TimeOfTrust() { return time_of_trust; }

void DoubtAll() { ++time_of_trust; }

void CommandLost(Ctx* ctx, bool says_so) noexcept {
  if (LimitsApply(ctx)) return;
  ++metrics.commands_lost;
  server.Log(ctx, "warning",
             "memory does not suffice for a command that another server has done; what it adds is "
             "missing here, and %s no longer believed",
             says_so ? "the filter is" : "filters with GUARD and those of BF.* and CF.* are");
  if (says_so) return;
  DoubtAll();
  chains_believed = false;
}

bool ChainsBelieved() { return chains_believed || faults.incomplete_is_believed; }

bool MayTrust(Ctx* ctx) {
  const int flags = server.GetContextFlags(ctx);
  return (flags & kFlagLoading) == 0 || (flags & kFlagSlave) != 0 || settings.trust_after_restart;
}

void TrustLoaded(Ctx* ctx, TrustedFilter* filter) {
  const bool loading = (server.GetContextFlags(ctx) & kFlagLoading) != 0;
  if (filter->partial() || (!loading && !faults.copies_are_believed) || !MayTrust(ctx)) return;
  if (filter->card().was_trusted) filter->Trust(time_of_trust);
  if (TrustedFilter::Rebuild* rebuild = filter->rebuild(); rebuild && rebuild->was_sound) {
    rebuild->sound_time = time_of_trust;
  }
}

bool Believed(Ctx* ctx, const TrustedFilter& filter) {
  if (filter.empty()) return false;
  if (filter.card().incomplete && !faults.incomplete_is_believed) return false;
  if (!filter.card().guard) return true;
  const bool replica = (server.GetContextFlags(ctx) & kFlagSlave) != 0;
  if (!filter.TrustedAt(time_of_trust)) return false;
  if (replica) return settings.trust_on_replicas;
  return settings.guard_min_replicas == 0 ||
         ReplicasFollow(ctx, settings.guard_min_replicas, settings.guard_max_lag);
}

}  // namespace tamis::redis
