#include "tamis/redis/tamis_type.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "tamis/redis/rdb_fields.h"
#include "tamis/redis/replicas.h"
#include "tamis/redis/settings.h"

namespace tamis::redis {

RedisModuleType* tamis_type = nullptr;

namespace {

constexpr char kTypeName[] = "TamisFltr";
constexpr int kEncoding = 1;

uint64_t time_of_trust = 1;

void OnRoleChange(Ctx*, ServerEvent, uint64_t, void*) noexcept { ++time_of_trust; }

// A header and pieces.
Result<TrustedFilter> Decode(RdbFields& fields, uint64_t greatest_bytes) {
  const auto early = [] { return Status(StatusCode::kDataLoss, "filter: the value ends early"); };
  const ByteArray header = fields.Bytes();
  if (fields.failed()) return early();
  auto filter = TrustedFilter::FromHeader(
      {reinterpret_cast<const char*>(header.data()), header.size()}, greatest_bytes);
  if (!filter.ok()) return filter.status();
  const uint64_t pieces = fields.Unsigned();
  for (uint64_t i = 0; i < pieces && !fields.failed(); ++i) {
    const ByteArray piece = fields.Bytes();
    if (fields.failed()) break;
    if (piece.size() == 0) return Status(StatusCode::kDataLoss, "filter: an empty piece");
    const Status status =
        filter->AppendChunk({reinterpret_cast<const char*>(piece.data()), piece.size()});
    if (!status.ok()) return status;
  }
  if (fields.failed()) return early();
  return filter;
}

void* Load(RedisModuleIO* io, int encoding) noexcept {
  try {
    RdbFields fields(io);
    if (encoding == kEncoding) {
      // Nothing is allocated for what the header promises, only for what comes.
      auto filter = Decode(fields, ~uint64_t{0});
      if (filter.ok()) {
        TrustLoaded(server.GetContextFromIO(io), &*filter);
        return new TrustedFilter(std::move(*filter));
      }
      server.LogIOError(io, "warning", "%s", filter.status().message().c_str());
    } else {
      server.LogIOError(io, "warning", "filter: saved by a later version of the module");
    }
  } catch (const std::bad_alloc&) {
    server.LogIOError(io, "warning", "memory does not suffice for the filter");
  }
  return nullptr;
}

void Save(RedisModuleIO* io, void* value) noexcept {
  const auto [header, bytes] = static_cast<const TrustedFilter*>(value)->Save(time_of_trust);
  server.SaveStringBuffer(io, header.data(), header.size());
  constexpr size_t kPiece = TrustedFilter::kGreatestChunk;
  server.SaveUnsigned(io, (bytes.size() + kPiece - 1) / kPiece);
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    server.SaveStringBuffer(io, bytes.data() + at, std::min(kPiece, bytes.size() - at));
  }
}

void Rewrite(RedisModuleIO* io, String* key, void* value) noexcept {
  const auto [header, bytes] = static_cast<const TrustedFilter*>(value)->Save(time_of_trust);
  server.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, 0ll, header.data(), header.size());
  constexpr size_t kPiece = TrustedFilter::kGreatestChunk;
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    server.EmitAOF(io, "TAMIS.LOADCHUNK", "slb", key, static_cast<long long>(at + 1),
                   bytes.data() + at, std::min(kPiece, bytes.size() - at));
  }
}

void Digest(RedisModuleDigest* digest, void* value) noexcept {
  const auto& filter = *static_cast<const TrustedFilter*>(value);
  const std::string header = filter.HeaderToCompare();
  const std::string bytes = filter.Save(0).bytes;
  server.DigestAddStringBuffer(digest, header.data(), header.size());
  server.DigestAddStringBuffer(digest, bytes.data(), bytes.size());
  server.DigestEndSequence(digest);
}

size_t MemoryUsage(const void* value) noexcept {
  return static_cast<const TrustedFilter*>(value)->SizeBytes();
}

size_t FreeEffort(String*, const void* value) noexcept {
  return 1 + static_cast<const TrustedFilter*>(value)->SizeBytes() / 4096;
}

void Free(void* value) noexcept { delete static_cast<TrustedFilter*>(value); }

void* Copy(String*, String*, const void* value) noexcept {
  try {
    auto* copy = new TrustedFilter(*static_cast<const TrustedFilter*>(value));
    // Two that are changed apart cannot both be right.
    copy->Trust(0);
    copy->EndDump();
    if (copy->rebuild() != nullptr) copy->rebuild()->sound_time = 0;
    return copy;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

int RegisterTamisType(Ctx* ctx) {
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
  tamis_type = server.CreateDataType(ctx, kTypeName, kEncoding, &methods);
  if (tamis_type == nullptr) return kErr;
  if (SubscribeToReplicas(ctx) != kOk) return kErr;
  return server.SubscribeToServerEvent(ctx, {kRoleChangedEvent, 1}, OnRoleChange);
}

uint64_t TimeOfTrust() { return time_of_trust; }

bool MayTrust(Ctx* ctx) {
  const int flags = server.GetContextFlags(ctx);
  return (flags & kFlagLoading) == 0 || (flags & kFlagSlave) != 0 || settings.trust_after_restart;
}

void TrustLoaded(Ctx* ctx, TrustedFilter* filter) {
  const bool loading = (server.GetContextFlags(ctx) & kFlagLoading) != 0;
  if (filter->partial() || !loading || !MayTrust(ctx)) return;
  if (filter->card().was_trusted) filter->Trust(time_of_trust);
  if (TrustedFilter::Rebuild* rebuild = filter->rebuild(); rebuild && rebuild->was_sound) {
    rebuild->sound_time = time_of_trust;
  }
}

bool Believed(Ctx* ctx, const TrustedFilter& filter) {
  if (filter.empty() || filter.card().incomplete) return false;
  if (!filter.card().guard) return true;
  const bool replica = (server.GetContextFlags(ctx) & kFlagSlave) != 0;
  if (!filter.TrustedAt(time_of_trust)) return false;
  if (replica) return settings.trust_on_replicas;
  return settings.guard_min_replicas == 0 ||
         ReplicasFollow(ctx, settings.guard_min_replicas, settings.guard_max_lag);
}

}  // namespace tamis::redis
