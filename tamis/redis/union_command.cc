#include "tamis/redis/union_command.h"

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/tamis_key.h"
#include "tamis/redis/trust.h"
#include "tamis/redis/trusted_keys.h"

namespace tamis::redis {
namespace {

constexpr char kUnlike[] =
    "ERR the filters are not alike: they are united when made with the same words and SEED";

constexpr char kOtherKind[] =
    "WRONGTYPE the filters of a union are all of TAMIS.*, or all of BF.*; those of CF.* and of "
    "valkey-bloom's kind are not united";

uint64_t BytesOf(const auto& filters) {
  uint64_t bytes = 0;
  for (const auto* filter : filters) bytes += filter->SizeBytes();
  return bytes;
}

// A filter without GUARD is believed for want of anything better: it may lack what it was given
// before a restart. In a union with GUARD it is not trusted.
bool IsSound(const TrustedFilter& part) {
  if (!part.metadata().guard) return faults.copies_are_believed;
  return part.IsTrustedIn(TrustEpoch());
}

// A union with GUARD is trusted if the key held a trusted filter with GUARD and so do all sources.
// A new filter is not: adds that were sent to its name before found none, as with COPY.
void UniteTrusted(Ctx* ctx, Words words, std::deque<TamisKey>& sources) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  TamisKey dest = Open(ctx, words, kRead | kWrite);
  if (dest.other_type()) return error(kOtherKind);
  constexpr char kWindowed[] =
      "ERR a filter with WINDOW is not united: its items leave it at times of their own";
  if (dest.get() != nullptr) {
    if (!Whole(ctx, dest)) return;
    if (dest->window() != nullptr) return error(kWindowed);
    if (dest->rebuild() != nullptr) {
      return error("ERR a rebuild is under way: COMMIT or ABORT it first");
    }
  }
  std::vector<const TrustedFilter*> parts;
  if (dest.get() != nullptr) parts.push_back(dest.get());
  for (TamisKey& source : sources) {
    if (source.other_type()) return error(kOtherKind);
    if (!Whole(ctx, source)) return;
    if (source->window() != nullptr) return error(kWindowed);
    if (source->empty()) return error("ERR there is only a rebuild: COMMIT it");
    // A server opens a key twice: the same one may be named more often.
    if (std::ranges::find(parts, source.get()) == parts.end()) parts.push_back(source.get());
  }
  // Sources after the first are added to its copy item by item, which takes longer.
  constexpr uint64_t kMerged = 4;
  if (BytesOf(parts) * (parts.size() > 1 ? kMerged : 1) > GreatestCopiedBytes(ctx)) {
    return error(kTooLargeToCopy);
  }
  const TrustedFilter& first = *parts.front();
  AnyFilter united = first.filter();
  TrustedFilter::Metadata metadata = first.metadata();
  if (dest.get() == nullptr) metadata.mark.clear();
  bool trusted = dest.get() != nullptr || faults.copies_are_believed;
  for (const TrustedFilter* part : parts) {
    if (part != &first) {
      const Status status = united.Merge(part->filter());
      if (status.code() == StatusCode::kResourceExhausted) {
        return error(
            "ERR the filters have more items than one of them has places: make them with a greater "
            "capacity");
      }
      if (!status.ok()) return error(kUnlike);
    }
    metadata.guard |= part->metadata().guard;
    metadata.incomplete |= part->metadata().incomplete;
    metadata.rebuilt_time = std::max(metadata.rebuilt_time, part->metadata().rebuilt_time);
    metadata.rebuilt_running_ms =
        std::max(metadata.rebuilt_running_ms, part->metadata().rebuilt_running_ms);
  }
  if (metadata.guard) {
    trusted &= std::ranges::all_of(parts, [](const auto* part) { return IsSound(*part); });
  }
  ListTrustedKey(ctx, words[1]);
  TrustedFilter filter(std::move(metadata), std::move(united));
  filter.Trust(trusted && MayTrust(ctx) ? TrustEpoch() : 0);
  if (dest.get() != nullptr) {
    *dest = std::move(filter);
  } else {
    dest.Set(std::move(filter));
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.union", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void UniteBlooms(Ctx* ctx, Words words, const std::deque<FilterKey<BloomChain>>& sources) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  FilterKey<BloomChain> dest(ctx, words[1], kRead | kWrite);
  if (dest.other_type()) return error(kOtherKind);
  std::vector<const BloomChain*> parts;
  if (dest.get() != nullptr) parts.push_back(dest.get());
  for (const FilterKey<BloomChain>& source : sources) {
    if (source.get() == nullptr) return error(source.missing() ? kNotFound : kOtherKind);
    if (std::ranges::find(parts, source.get()) == parts.end()) parts.push_back(source.get());
  }
  for (const BloomChain* part : parts) {
    if (part->partial()) return error(kPartial);
  }
  if (BytesOf(parts) > GreatestCopiedBytes(ctx)) return error(kTooLargeToCopy);
  auto united = parts.front()->Copy();
  if (!united) return error("ERR Insufficient memory to create filter");
  for (const BloomChain* part : std::span(parts).subspan(1)) {
    const Status status = united->Merge(*part);
    if (!status.ok()) {
      return error(status.code() == StatusCode::kResourceExhausted
                       ? "ERR Insufficient memory to create filter"
                       : kUnlike);
    }
  }
  if (united->SizeBytes() > GreatestBytes(ctx)) {
    return error("ERR could not create filter: greater than tamis-max-bytes");
  }
  if (dest.get() != nullptr) {
    *dest = std::move(*united);
  } else {
    dest.Set(std::move(*united));
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.union", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

}  // namespace

void Unite(Ctx* ctx, Words words) {
  std::deque<FilterKey<BloomChain>> blooms;
  std::deque<TamisKey> own;
  for (String* name : words.subspan(2)) {
    blooms.emplace_back(ctx, name, kRead);
    own.emplace_back(ctx, name, kRead);
  }
  if (blooms.front().get() != nullptr) {
    UniteBlooms(ctx, words, blooms);
  } else {
    UniteTrusted(ctx, words, own);
  }
}

}  // namespace tamis::redis
