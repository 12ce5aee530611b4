#include "tamis/redis/rebuild_command.h"

#include <optional>
#include <string>
#include <vector>

#include "tamis/redis/clock.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/item_groups.h"
#include "tamis/redis/metrics.h"
#include "tamis/redis/option_words.h"
#include "tamis/redis/tamis_key.h"
#include "tamis/redis/trust.h"
#include "tamis/redis/trusted_keys.h"
#include "tamis/redis/wanted_filter.h"

namespace tamis::redis {
namespace {

constexpr char kOtherRebuild[] = "ERR another rebuild is under way";

// A lease is granted by the server that the program talks to: replicas and logs have none.
void Renew(Ctx* ctx, TrustedFilter::Rebuild& rebuild) {
  if (LimitsApply(ctx)) rebuild.lease_end_ms = PresentMoment().running_ms + rebuild.lease_ms;
}

void Start(Ctx* ctx, Words words) {
  WantedFilter wanted;
  if (!ReadWanted(ctx, words.subspan(3), Purpose::kRebuild, &wanted)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) {
    if (!Whole(ctx, key)) return;
    if (key->window() != nullptr) {
      server.ReplyWithError(ctx,
                            "ERR a filter with WINDOW is not rebuilt: when all items of the last "
                            "window were added to it, TRUST it");
      return;
    }
    if (key->rebuild() != nullptr) {
      server.ReplyWithError(ctx, "ERR a rebuild is under way: COMMIT or ABORT it first");
      return;
    }
  }
  std::optional<AnyFilter> filter = Create(ctx, wanted);
  if (!filter) return;
  ListTrustedKey(ctx, words[1]);
  TrustedFilter::Rebuild rebuild;
  rebuild.id = wanted.id;
  rebuild.wanted_rate = wanted.options.fpr;
  rebuild.capacity = wanted.options.capacity;
  rebuild.sound_epoch = MayTrust(ctx) ? TrustEpoch() : 0;
  rebuild.filter = std::move(*filter);
  rebuild.lease_ms = static_cast<int64_t>(wanted.lease_s) * 1000;
  Renew(ctx, rebuild);
  if (key.missing()) {
    TrustedFilter::Metadata metadata;
    metadata.guard = true;
    metadata.wanted_rate = rebuild.wanted_rate;
    metadata.capacity = rebuild.capacity;
    key.Set(TrustedFilter(std::move(metadata), std::move(rebuild)));
  } else {
    key->Start(std::move(rebuild));
  }
  server.Replicate(ctx, "TAMIS.REBUILD", "scclcbclcl", words[1], "START", wanted.Rate().c_str(),
                   static_cast<long long>(wanted.options.capacity), "TYPE",
                   wanted.type->name.data(), wanted.type->name.size(), "SEED",
                   static_cast<long long>(wanted.options.seed), "ID",
                   static_cast<long long>(wanted.id));
  DoubtInOwnLog(ctx, words[1]);
  ++metrics.rebuilds_started;
  Notify(ctx, "tamis.rebuild.start", words[1]);
  server.ReplyWithLongLong(ctx, static_cast<long long>(wanted.id));
}

// False, and the error is sent, unless there is a filter that is being rebuilt.
bool Rebuilding(Ctx* ctx, TamisKey& key) {
  if (!Whole(ctx, key)) return false;
  if (key->rebuild() != nullptr) return true;
  server.ReplyWithError(ctx, "ERR no rebuild is under way");
  return false;
}

// False, and the error is sent, when another rebuild than that of `id` is under way.
bool IsThatRebuild(Ctx* ctx, const TamisKey& key, long long id) {
  if (!LimitsApply(ctx) || static_cast<uint64_t>(id) == key->rebuild()->id) return true;
  server.ReplyWithError(ctx, kOtherRebuild);
  return false;
}

// False, and the error is sent, when the word is no id.
bool ParseId(Ctx* ctx, const String* word, long long* id) {
  if (ParseInteger(word, id) && *id >= 0) return true;
  server.ReplyWithError(ctx, "ERR bad id");
  return false;
}

// With `id`, to that rebuild or to none.
void AddToRebuild(Ctx* ctx, Words words, Words items, std::optional<long long> id) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Rebuilding(ctx, key) || (id && !IsThatRebuild(ctx, key, *id))) return;
  Renew(ctx, *key->rebuild());
  const bool was_complete = !key->rebuild()->incomplete;
  long long added = 0;
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t) {
    added += static_cast<long long>(key->AddToRebuild(texts));
  });
  server.ReplyWithLongLong(ctx, added);
  if (added == 0 && !was_complete) return;
  // A replica knows, too, that one was refused.
  server.Replicate(ctx, "TAMIS.REBUILD", "scv", words[1], "ADD", items.data(), items.size());
  Notify(ctx, "tamis.rebuild.add", words[1]);
}

void AddIf(Ctx* ctx, Words words) {
  long long id = 0;
  if (ParseId(ctx, words[3], &id)) AddToRebuild(ctx, words, words.subspan(4), id);
}

// Whether the new filter has the items, for the program that fills it, before it commits.
void CheckRebuild(Ctx* ctx, Words words) {
  long long id = 0;
  if (!ParseId(ctx, words[3], &id)) return;
  TamisKey key = Open(ctx, words, kRead);
  if (!Rebuilding(ctx, key) || !IsThatRebuild(ctx, key, id)) return;
  const Words items = words.subspan(4);
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  for (const String* item : items) {
    server.ReplyWithLongLong(ctx, key->RebuildMayContain(TextOf(item)) ? 1 : 0);
  }
}

// The program that fills a rebuild says that it is alive. Nothing of it is replicated.
void Keep(Ctx* ctx, Words words) {
  long long id = 0;
  if (!ParseId(ctx, words[3], &id)) return;
  long long lease_s = 0;
  if (!ParseInteger(words[4], &lease_s) || lease_s < 0 || lease_s > kGreatestLease) {
    server.ReplyWithError(ctx, kBadLease);
    return;
  }
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Rebuilding(ctx, key) || !IsThatRebuild(ctx, key, id)) return;
  key->rebuild()->lease_ms = static_cast<int64_t>(lease_s) * 1000;
  Renew(ctx, *key->rebuild());
  server.ReplyWithSimpleString(ctx, "OK");
}

// The words after COMMIT and ABORT.
struct EndWords {
  const String* mark = nullptr;
  std::optional<long long> id;
};

// False, and the error is sent, when they are not right.
bool ReadEndWords(Ctx* ctx, Words words, bool may_mark, EndWords* end) {
  std::vector<Option> known = {
      {.name = "ID", .value = &end->id, .bad = "ERR bad id", .no_value = kUnknownWord}};
  if (may_mark) known.push_back({.name = "MARK", .value = &end->mark, .no_value = kUnknownWord});
  return ReadOptions(ctx, words, 0, known) && (end->mark == nullptr || MarkCanBe(ctx, end->mark));
}

void Free(std::optional<AnyFilter> filter) {
  const size_t bytes = filter ? filter->SizeBytes() : 0;
  FreeLater(std::move(filter), bytes);
}

void Commit(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  EndWords end;
  if (!ReadEndWords(ctx, words.subspan(3), true, &end)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Rebuilding(ctx, key)) return;
  const TrustedFilter::Rebuild& rebuild = *key->rebuild();
  // A command that another server has done is repeated; a client's command has to be right.
  if (LimitsApply(ctx)) {
    if (end.id && static_cast<uint64_t>(*end.id) != rebuild.id && !faults.commit_of_another)
      return error(kOtherRebuild);
    if (rebuild.incomplete && !faults.commit_what_was_full) {
      return error("ERR the new filter was full: ABORT, and START with a greater capacity");
    }
    if (rebuild.sound_epoch != TrustEpoch() && !faults.commit_after_loss) {
      return error("ERR adds may be lost since START: ABORT, and START again");
    }
  }
  // A COMMIT without a mark clears the filter's mark: it is not known where the feed of changes
  // goes on after the snapshot that the new filter was filled from.
  std::string mark(end.mark == nullptr ? std::string_view() : TextOf(end.mark));
  ListTrustedKey(ctx, words[1]);
  auto before = key->Commit(MayTrust(ctx) ? TrustEpoch() : 0, PresentMoment(), std::move(mark));
  Free(std::move(before));
  server.ReplicateVerbatim(ctx);
  DoubtInOwnLog(ctx, words[1]);
  ++metrics.rebuilds_committed;
  Notify(ctx, "tamis.rebuild.commit", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Abort(Ctx* ctx, Words words) {
  EndWords end;
  if (!ReadEndWords(ctx, words.subspan(3), false, &end)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Rebuilding(ctx, key)) return;
  if (end.id && !IsThatRebuild(ctx, key, *end.id)) return;
  if (key->empty()) {
    key.Delete();  // there is nothing else
  } else {
    Free(key->Abort());
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.rebuild.abort", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

}  // namespace

void Rebuild(Ctx* ctx, Words words) {
  const auto is = [&](const char* name) { return Is(words[2], name); };
  if (is("START") && words.size() >= 5) return Start(ctx, words);
  if (is("ADD") && words.size() >= 4) {
    return AddToRebuild(ctx, words, words.subspan(3), std::nullopt);
  }
  if (is("ADDIF") && words.size() >= 5) return AddIf(ctx, words);
  if (is("CHECK") && words.size() >= 5) return CheckRebuild(ctx, words);
  if (is("KEEP") && words.size() == 5) return Keep(ctx, words);
  if (is("COMMIT")) return Commit(ctx, words);
  if (is("ABORT")) return Abort(ctx, words);
  const bool known = is("START") || is("ADD") || is("ADDIF") || is("CHECK") || is("KEEP");
  server.ReplyWithError(
      ctx, known ? "ERR wrong number of arguments for 'tamis.rebuild' command"
                 : "ERR no such step of a rebuild; there are: START ADD ADDIF CHECK KEEP COMMIT "
                   "ABORT");
}

}  // namespace tamis::redis
