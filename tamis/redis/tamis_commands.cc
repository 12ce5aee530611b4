#include "tamis/redis/tamis_commands.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <deque>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/cuckoo_chain.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/filter_key.h"
#include "tamis/redis/item_groups.h"
#include "tamis/redis/metrics.h"
#include "tamis/redis/option_words.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/tamis_type.h"

namespace tamis::redis {
namespace {

using TamisKey = FilterKey<TrustedFilter>;

constexpr char kDefaultType[] = "blocked-quotient";

TamisKey Open(Ctx* ctx, Words words, int mode) { return {ctx, words[1], mode}; }

// False, and the error is sent, unless there is a whole filter.
bool Whole(Ctx* ctx, TamisKey& key) {
  if (key.get() != nullptr && !key->partial()) return true;
  server.ReplyWithError(ctx, key.missing() ? kNotFound : key.other_type() ? kWrongType : kPartial);
  return false;
}

uint64_t Now() { return static_cast<uint64_t>(server.Milliseconds()); }

// False, and the error is sent, when it is too long.
bool MarkCanBe(Ctx* ctx, const String* mark) {
  if (TextOf(mark).size() <= 1024) return true;
  server.ReplyWithError(ctx, "ERR a mark has at most 1024 bytes");
  return false;
}

// A filter that somebody asks for, and the words for a replica.
struct Wanted {
  FilterOptions options;
  const FilterType* type = nullptr;
  bool guard = false;
  uint64_t id = 0;

  double BitsPerKey() const { return AnyFilter::BitsPerKey(*type, options.fpr); }
  double Bytes() const { return BitsPerKey() / 8 * static_cast<double>(options.capacity); }
  std::string Rate() const {
    char rate[32];
    std::snprintf(rate, sizeof(rate), "%.17g", options.fpr);
    return rate;
  }
};

enum class Purpose { kReserve, kRebuild, kSize };

// False, and the error is sent, when `words`, a rate, a capacity and options, do not say it.
bool ReadWanted(Ctx* ctx, Words words, Purpose purpose, Wanted* wanted) {
  const auto error = [&](const std::string& text) {
    server.ReplyWithError(ctx, text.c_str());
    return false;
  };
  FilterOptions& options = wanted->options;
  long long number = 0;
  if (!ParseDouble(words[0], &options.fpr)) return error("ERR bad error rate");
  if (!ParseInteger(words[1], &number) || number < 1) return error("ERR bad capacity");
  options.capacity = static_cast<uint64_t>(number);
  const String* type = nullptr;
  std::optional<long long> seed;
  std::optional<long long> id;
  std::vector<Option> known = {{.name = "TYPE", .value = &type, .no_value = kUnknownWord}};
  if (purpose != Purpose::kSize) {
    known.push_back(
        {.name = "SEED", .value = &seed, .bad = "ERR bad seed", .no_value = kUnknownWord});
  }
  if (purpose == Purpose::kReserve) known.push_back({"GUARD", &wanted->guard});
  if (purpose == Purpose::kRebuild) {
    known.push_back(
        {.name = "ID", .value = &id, .bad = "ERR bad id", .least = 0, .no_value = kUnknownWord});
  }
  if (!ReadOptions(ctx, words, 2, known)) return false;
  // Those that nobody knows in advance; replicas are told.
  options.seed = seed ? static_cast<uint64_t>(*seed) : SeedFromSystem();
  // One that every language can hold.
  wanted->id = id ? static_cast<uint64_t>(*id) : SeedFromSystem() >> 11;
  if (const Status status = options.Validate(); !status.ok()) {
    return error("ERR " + status.message());
  }
  wanted->type = AnyFilter::FindType(type == nullptr ? kDefaultType : std::string(TextOf(type)));
  // A type that is not known may come from the wire with any bytes: they do not belong in an error.
  if (wanted->type == nullptr || wanted->type->fixed) {
    std::string names;
    for (const FilterType& known : AnyFilter::Types()) {
      if (!known.fixed) names += " " + std::string(known.name);
    }
    return error("ERR no such type; there are:" + names);
  }
  if (purpose != Purpose::kSize && wanted->Bytes() > static_cast<double>(GreatestBytes(ctx))) {
    return error("ERR could not create filter: greater than tamis-max-bytes");
  }
  return true;
}

void Reserve(Ctx* ctx, Words words) {
  Wanted wanted;
  if (!ReadWanted(ctx, words.subspan(2), Purpose::kReserve, &wanted)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) {
    server.ReplyWithError(ctx, key.other_type() ? kWrongType : "ERR item exists");
    return;
  }
  auto filter = AnyFilter::Create(wanted.type->name, wanted.options);
  if (!filter.ok()) {
    server.ReplyWithError(ctx, ("ERR " + filter.status().message()).c_str());
    return;
  }
  TrustedFilter::Card card;
  card.guard = wanted.guard;
  card.wanted_rate = wanted.options.fpr;
  card.capacity = wanted.options.capacity;
  key.Set(TrustedFilter(std::move(card), std::move(*filter)));
  server.Replicate(ctx, "TAMIS.RESERVE", wanted.guard ? "sclcbclc" : "sclcbcl", words[1],
                   wanted.Rate().c_str(), static_cast<long long>(wanted.options.capacity), "TYPE",
                   wanted.type->name.data(), wanted.type->name.size(), "SEED",
                   static_cast<long long>(wanted.options.seed), "GUARD");
  Notify(ctx, "tamis.reserve", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Add(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  const Words items = words.subspan(2);
  std::vector<String*> added;  // what a replica has to add
  try {
    added.reserve(items.size());
  } catch (const std::bad_alloc&) {
    if (!LimitsApply(ctx)) key->set_incomplete();
    throw;
  }
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t begin) {
    key->Fetch(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      const TrustedFilter::Added done = key->Add(texts[i]);
      if (done != TrustedFilter::Added::kFull) {
        added.push_back(items[begin + i]);
      } else {
        ++key->counters().refused;
        ++metrics.adds_refused;
        // Another server has taken it, and somebody relies on that.
        if (!LimitsApply(ctx)) key->set_incomplete();
      }
      server.ReplyWithLongLong(ctx, done == TrustedFilter::Added::kNew       ? 1
                                    : done == TrustedFilter::Added::kPerhaps ? 0
                                                                             : -1);
    }
  });
  if (added.empty()) return;
  server.Replicate(ctx, "TAMIS.ADD", "sv", words[1], added.data(), added.size());
  Notify(ctx, "tamis.add", words[1]);
}

// Whether an erase may take place. Where adds may be lost, an item may not be there, and its erase
// would take away another one; so may be the last erases that were meant for the filter before.
bool MayErase(Ctx* ctx, const TrustedFilter& filter) {
  if (!LimitsApply(ctx) || faults.erases_when_unsure) return true;
  if (!Believed(ctx, filter)) return false;
  const uint64_t delay = static_cast<uint64_t>(settings.erase_delay) * 1000;
  const uint64_t rebuilt = filter.card().rebuilt_time;
  return rebuilt == 0 || delay == 0 || Now() >= rebuilt + delay;
}

// nullopt when memory does not suffice.
std::optional<bool> EraseIfMemory(TrustedFilter& filter, std::string_view item) try {
  return filter.Erase(item);
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

void EraseItems(Ctx* ctx, Words words, TamisKey& key, Words items, bool may_erase) {
  if (!key->empty() && !key->filter().type().erases) {
    server.ReplyWithError(ctx, "ERR a filter of this type does not erase");
    return;
  }
  std::vector<String*> erased;  // what a replica has to erase
  erased.reserve(items.size());
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t begin) {
    if (may_erase) key->Fetch(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::optional<bool> done = may_erase ? EraseIfMemory(*key, texts[i]) : std::nullopt;
      if (!done) {
        ++key->counters().skipped;
        ++metrics.erases_skipped;
      } else if (*done) {
        erased.push_back(items[begin + i]);
      }
      server.ReplyWithLongLong(ctx, !done ? -1 : *done ? 1 : 0);
    }
  });
  if (erased.empty()) return;
  server.Replicate(ctx, "TAMIS.DEL", "sv", words[1], erased.data(), erased.size());
  Notify(ctx, "tamis.del", words[1]);
}

void Erase(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  EraseItems(ctx, words, key, words.subspan(2), MayErase(ctx, *key));
}

// False, and the error is sent, when it is no number.
bool ParseGeneration(Ctx* ctx, const String* word, uint64_t* generation) {
  long long number = 0;
  if (!ParseInteger(word, &number) || number < 0) {
    server.ReplyWithError(ctx, "ERR bad generation");
    return false;
  }
  *generation = static_cast<uint64_t>(number);
  return true;
}

void EraseOfGeneration(Ctx* ctx, Words words) {
  uint64_t generation = 0;
  if (!ParseGeneration(ctx, words[2], &generation)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  // It held the row that went, whenever it took its place.
  const bool same = key->generation() == generation || faults.erases_of_other_generation;
  EraseItems(ctx, words, key, words.subspan(3), same && Believed(ctx, *key));
}

void Generation(Ctx* ctx, Words words) {
  const TamisKey key = Open(ctx, words, kRead);
  const bool whole = key.get() != nullptr && !key->empty();
  server.ReplyWithLongLong(ctx, whole ? static_cast<long long>(key->generation()) : 0);
}

void Start(Ctx* ctx, Words words) {
  Wanted wanted;
  if (!ReadWanted(ctx, words.subspan(3), Purpose::kRebuild, &wanted)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) {
    if (!Whole(ctx, key)) return;
    if (key->rebuild() != nullptr) {
      server.ReplyWithError(ctx, "ERR a rebuild is under way: COMMIT or ABORT it first");
      return;
    }
  }
  auto filter = AnyFilter::Create(wanted.type->name, wanted.options);
  if (!filter.ok()) {
    server.ReplyWithError(ctx, ("ERR " + filter.status().message()).c_str());
    return;
  }
  TrustedFilter::Rebuild rebuild;
  rebuild.id = wanted.id;
  rebuild.wanted_rate = wanted.options.fpr;
  rebuild.capacity = wanted.options.capacity;
  rebuild.sound_time = MayTrust(ctx) ? TimeOfTrust() : 0;
  rebuild.filter = std::move(*filter);
  if (key.missing()) {
    TrustedFilter::Card card;
    card.guard = true;
    card.wanted_rate = rebuild.wanted_rate;
    card.capacity = rebuild.capacity;
    key.Set(TrustedFilter(std::move(card), std::move(rebuild)));
  } else {
    key->Start(std::move(rebuild));
  }
  server.Replicate(ctx, "TAMIS.REBUILD", "scclcbclcl", words[1], "START", wanted.Rate().c_str(),
                   static_cast<long long>(wanted.options.capacity), "TYPE",
                   wanted.type->name.data(), wanted.type->name.size(), "SEED",
                   static_cast<long long>(wanted.options.seed), "ID",
                   static_cast<long long>(wanted.id));
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

void AddToRebuild(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Rebuilding(ctx, key)) return;
  const Words items = words.subspan(3);
  const bool was_complete = !key->rebuild()->incomplete;
  long long added = 0;
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t) {
    added += static_cast<long long>(key->AddToRebuild(texts));
  });
  server.ReplyWithLongLong(ctx, added);
  if (added == 0 && !was_complete) return;
  // A replica knows, too, that one was refused.
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.rebuild.add", words[1]);
}

// What stands behind COMMIT and ABORT.
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

constexpr char kOtherRebuild[] = "ERR another rebuild is under way";

void Commit(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  EndWords end;
  if (!ReadEndWords(ctx, words.subspan(3), true, &end)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Rebuilding(ctx, key)) return;
  const TrustedFilter::Rebuild& rebuild = *key->rebuild();
  // What another server has done is repeated; here it has to be right.
  if (LimitsApply(ctx)) {
    if (end.id && static_cast<uint64_t>(*end.id) != rebuild.id && !faults.commit_of_another)
      return error(kOtherRebuild);
    if (rebuild.incomplete && !faults.commit_what_was_full) {
      return error("ERR the new filter was full: ABORT, and START with a greater capacity");
    }
    if (rebuild.sound_time != TimeOfTrust() && !faults.commit_after_loss) {
      return error("ERR adds may be lost since START: ABORT, and START again");
    }
  }
  // Without one nobody knows where the log goes on behind the snapshot.
  std::string mark(end.mark == nullptr ? std::string_view() : TextOf(end.mark));
  key->Commit(MayTrust(ctx) ? TimeOfTrust() : 0, Now(), std::move(mark));
  server.ReplicateVerbatim(ctx);
  ++metrics.rebuilds_committed;
  Notify(ctx, "tamis.rebuild.commit", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Abort(Ctx* ctx, Words words) {
  EndWords end;
  if (!ReadEndWords(ctx, words.subspan(3), false, &end)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Rebuilding(ctx, key)) return;
  if (LimitsApply(ctx) && end.id && static_cast<uint64_t>(*end.id) != key->rebuild()->id) {
    server.ReplyWithError(ctx, kOtherRebuild);
    return;
  }
  if (key->empty()) {
    key.Delete();  // there is nothing else
  } else {
    key->Abort();
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.rebuild.abort", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Rebuild(Ctx* ctx, Words words) {
  const auto is = [&](const char* name) { return Is(words[2], name); };
  if (is("START") && words.size() >= 5) return Start(ctx, words);
  if (is("ADD") && words.size() >= 4) return AddToRebuild(ctx, words);
  if (is("COMMIT")) return Commit(ctx, words);
  if (is("ABORT")) return Abort(ctx, words);
  server.ReplyWithError(ctx, is("START") || is("ADD")
                                 ? "ERR wrong number of arguments for 'tamis.rebuild' command"
                                 : "ERR no such step of a rebuild; there are: START ADD COMMIT "
                                   "ABORT");
}

void ReplyUnknown(Ctx* ctx, size_t count) {
  metrics.checks_unknown += count;
  for (size_t i = 0; i < count; ++i) server.ReplyWithLongLong(ctx, -1);
}

void ReplyMayContain(Ctx* ctx, bool may_contain) {
  ++(may_contain ? metrics.checks_perhaps : metrics.checks_absent);
  server.ReplyWithLongLong(ctx, may_contain ? 1 : 0);
}

template <class Chain>
void CheckChain(Ctx* ctx, const Chain& chain, Words items) {
  if (chain.partial()) return ReplyUnknown(ctx, items.size());
  ForAnswers(chain, items, [ctx](bool may_contain) { ReplyMayContain(ctx, may_contain); });
}

void CheckTrusted(Ctx* ctx, TrustedFilter& trusted, Words items) {
  TrustedFilter::Counters& counters = trusted.counters();
  if (!Believed(ctx, trusted)) {
    counters.unknown += items.size();
    return ReplyUnknown(ctx, items.size());
  }
  const AnyFilter& filter = trusted.filter();
  const uint64_t seed = filter.seed();
  const auto reply = [&](bool may_contain) {
    ++(may_contain ? counters.hits : counters.misses);
    ReplyMayContain(ctx, may_contain);
  };
  if (items.size() == 1) return reply(filter.MayContain(Hash(TextOf(items[0]), seed)));
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t) {
    uint64_t hashes[kGroup];
    for (size_t i = 0; i < texts.size(); ++i) hashes[i] = Hash(texts[i], seed);
    Bitmap answers;
    try {
      answers = filter.MayContain(std::span<const uint64_t>(hashes, texts.size()));
    } catch (const std::bad_alloc&) {
      counters.unknown += texts.size();
      return ReplyUnknown(ctx, texts.size());
    }
    for (size_t i = 0; i < texts.size(); ++i) reply(TestBit(answers, i));
  });
}

void Check(Ctx* ctx, Words words) {
  const Words items = words.subspan(2);
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  if (const TamisKey key = Open(ctx, words, kRead); key.get() != nullptr) {
    return CheckTrusted(ctx, *key, items);
  }
  if (const FilterKey<BloomChain> key(ctx, words[1], kRead); key.get() != nullptr) {
    return CheckChain(ctx, *key, items);
  }
  if (const FilterKey<CuckooChain> key(ctx, words[1], kRead); key.get() != nullptr) {
    return CheckChain(ctx, *key, items);
  }
  ReplyUnknown(ctx, items.size());
}

void Trust(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  if (key->card().incomplete && !faults.incomplete_is_believed) {
    server.ReplyWithError(ctx,
                          "ERR an add was refused here that another server took: "
                          "fill a new filter");
    return;
  }
  if (key->empty()) {
    server.ReplyWithError(ctx, "ERR there is only a rebuild: COMMIT it");
    return;
  }
  if (MayTrust(ctx)) key->Trust(TimeOfTrust());
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.trust", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Mark(Ctx* ctx, Words words) {
  if (words.size() > 4) {
    server.ReplyWithError(ctx, "ERR wrong number of arguments for 'tamis.mark' command");
    return;
  }
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key) || !MarkCanBe(ctx, words[2])) return;
  uint64_t generation = 0;
  if (words.size() > 3 && !ParseGeneration(ctx, words[3], &generation)) return;
  if (words.size() > 3 && generation != key->generation()) {
    server.ReplyWithError(ctx, "NOGENERATION the filter is another one than when that was read");
    return;
  }
  const std::string_view mark = TextOf(words[2]);
  if (mark != key->card().mark) {
    key->set_mark(mark);
    server.Replicate(ctx, "TAMIS.MARK", "ss", words[1], words[2]);
    Notify(ctx, "tamis.mark", words[1]);
  }
  server.ReplyWithSimpleString(ctx, "OK");
}

// The rate of a filter as it is. Some types read all of their bytes for it: of a large one it is
// seen how many of some hashes that nobody added it would not refuse.
double RateNow(const AnyFilter& filter) {
  constexpr size_t kReadWhole = size_t{16} << 20;
  if (filter.SizeBytes() <= kReadWhole) return filter.ExpectedFpr();
  constexpr size_t kHashes = 4096;
  constexpr size_t kRounds = 16;
  std::vector<uint64_t> hashes(kHashes);
  Random random(filter.seed());
  uint64_t found = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    for (uint64_t& hash : hashes) hash = random();
    for (const uint64_t word : filter.MayContain(hashes)) found += std::popcount(word);
  }
  return static_cast<double>(found) / (kHashes * kRounds);
}

void Info(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead);
  if (!Whole(ctx, key)) return;
  const AnyFilter* filter = key->empty() ? nullptr : &key->filter();
  const TrustedFilter::Card& card = key->card();
  const TrustedFilter::Rebuild* rebuild = key->rebuild();
  const char* state = filter == nullptr     ? "none"
                      : card.incomplete     ? "incomplete"
                      : Believed(ctx, *key) ? "trusted"
                                            : "not trusted";
  const char* rebuild_state = rebuild == nullptr                     ? "none"
                              : rebuild->incomplete                  ? "full"
                              : rebuild->sound_time != TimeOfTrust() ? "adds may be lost"
                                                                     : "under way";
  const auto text = [&](const char* name, std::string_view value) {
    server.ReplyWithSimpleString(ctx, name);
    ReplyText(ctx, value);
  };
  const auto number = [&](const char* name, uint64_t value) {
    server.ReplyWithSimpleString(ctx, name);
    server.ReplyWithLongLong(ctx, static_cast<long long>(value));
  };
  const auto real = [&](const char* name, double value) {
    server.ReplyWithSimpleString(ctx, name);
    server.ReplyWithDouble(ctx, value);
  };
  server.ReplyWithMap(ctx, 21);
  text("Type", filter == nullptr ? "" : filter->type().name);
  text("State", state);
  number("Guard", card.guard ? 1 : 0);
  text("Mark", card.mark);
  number("Generation", filter == nullptr ? 0 : key->generation());
  number("Bytes", key->SizeBytes());
  number("Capacity", card.capacity);
  number("Items", filter == nullptr ? 0 : filter->Count());
  real("Fill", filter == nullptr || card.capacity == 0
                   ? 0
                   : static_cast<double>(filter->Count()) / static_cast<double>(card.capacity));
  real("Wanted rate", card.wanted_rate);
  real("Expected rate", filter == nullptr ? 1 : RateNow(*filter));
  number("Hits", key->counters().hits);
  number("Misses", key->counters().misses);
  number("Unknown", key->counters().unknown);
  number("Refused", key->counters().refused);
  number("Stuck", filter == nullptr ? 0 : filter->StuckErases());
  number("Skipped erases", key->counters().skipped);
  text("Rebuild", rebuild_state);
  number("Rebuild id", rebuild == nullptr ? 0 : rebuild->id);
  number("Rebuild items", rebuild == nullptr ? 0 : rebuild->filter->Count());
  number("Rebuild skipped erases", rebuild == nullptr ? 0 : rebuild->skipped);
}

void Count(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead);
  if (!Whole(ctx, key)) return;
  server.ReplyWithLongLong(ctx, key->empty() ? 0 : static_cast<long long>(key->filter().Count()));
}

void Size(Ctx* ctx, Words words) {
  Wanted wanted;
  if (!ReadWanted(ctx, words.subspan(1), Purpose::kSize, &wanted)) return;
  server.ReplyWithMap(ctx, 4);
  server.ReplyWithSimpleString(ctx, "Type");
  ReplyText(ctx, wanted.type->name);
  server.ReplyWithSimpleString(ctx, "Bytes");
  server.ReplyWithLongLong(ctx, static_cast<long long>(wanted.Bytes()));
  server.ReplyWithSimpleString(ctx, "Bits per key");
  server.ReplyWithDouble(ctx, wanted.BitsPerKey());
  server.ReplyWithSimpleString(ctx, "Rate");
  server.ReplyWithDouble(ctx, AnyFilter::FprAtCapacity(*wanted.type, wanted.options.fpr));
}

constexpr char kUnlike[] =
    "ERR the filters are not alike: they are united when made with the same words and SEED";

// What the source that is merged says of what comes out.
void UniteTrusted(Ctx* ctx, Words words, std::deque<TamisKey>& sources) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  TamisKey dest = Open(ctx, words, kRead | kWrite);
  if (dest.other_type()) return error(kWrongType);
  if (dest.get() != nullptr) {
    if (!Whole(ctx, dest)) return;
    if (dest->rebuild() != nullptr) {
      return error("ERR a rebuild is under way: COMMIT or ABORT it first");
    }
  }
  std::vector<const TrustedFilter*> parts;
  if (dest.get() != nullptr) parts.push_back(dest.get());
  for (TamisKey& source : sources) {
    if (!Whole(ctx, source)) return;
    if (source->empty()) return error("ERR there is only a rebuild: COMMIT it");
    // A server opens a key twice: the same one may be named more often.
    if (std::ranges::find(parts, source.get()) == parts.end()) parts.push_back(source.get());
  }
  const TrustedFilter& first = *parts.front();
  AnyFilter united = first.filter();
  TrustedFilter::Card card = first.card();
  if (dest.get() == nullptr) card.mark.clear();
  bool trusted = true;
  for (const TrustedFilter* part : parts) {
    if (part != &first) {
      const Status status = united.Merge(part->filter());
      if (status.code() == StatusCode::kResourceExhausted) {
        return error("ERR the filters have more items than one of them has places");
      }
      if (!status.ok()) return error(kUnlike);
    }
    card.guard |= part->card().guard;
    card.incomplete |= part->card().incomplete;
    card.rebuilt_time = std::max(card.rebuilt_time, part->card().rebuilt_time);
    trusted &= !part->card().guard || part->TrustedAt(TimeOfTrust());
  }
  TrustedFilter filter(std::move(card), std::move(united));
  filter.Trust(trusted && MayTrust(ctx) ? TimeOfTrust() : 0);
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
  if (dest.other_type()) return error(kWrongType);
  std::vector<const BloomChain*> parts;
  if (dest.get() != nullptr) parts.push_back(dest.get());
  for (const FilterKey<BloomChain>& source : sources) {
    if (source.get() == nullptr) return error(source.missing() ? kNotFound : kWrongType);
    if (std::ranges::find(parts, source.get()) == parts.end()) parts.push_back(source.get());
  }
  for (const BloomChain* part : parts) {
    if (part->partial()) return error(kPartial);
  }
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

void ScanDump(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  long long position = 0;
  if (!ParseInteger(words[2], &position) || position < 0) return error("ERR bad position");
  TamisKey key = Open(ctx, words, kRead);
  if (!Whole(ctx, key)) return;
  if (position == 0) {
    const TrustedFilter::Saved& dump = key->BeginDump(TimeOfTrust());
    server.ReplyWithArray(ctx, 2);
    server.ReplyWithLongLong(ctx, 1);
    return ReplyText(ctx, dump.header);
  }
  const TrustedFilter::Saved* dump = key->dump();
  if (dump == nullptr) return error("ERR no dump is under way: begin at position 0");
  const auto at = std::min<uint64_t>(static_cast<uint64_t>(position) - 1, dump->bytes.size());
  const std::string_view chunk =
      std::string_view(dump->bytes).substr(at, TrustedFilter::kGreatestChunk);
  server.ReplyWithArray(ctx, 2);
  server.ReplyWithLongLong(ctx,
                           chunk.empty() ? 0 : position + static_cast<long long>(chunk.size()));
  ReplyText(ctx, chunk);
  if (chunk.empty()) key->EndDump();
}

void LoadChunk(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  long long position = 0;
  if (!ParseInteger(words[2], &position) || position < 0) return error("ERR bad position");
  const std::string_view data = TextOf(words[3]);
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (key.other_type()) return error(kWrongType);
  const auto bad = [&](const Status& status) {
    server.Log(ctx, "notice", "TAMIS.LOADCHUNK: %s", status.message().c_str());
    error("ERR received bad data");
  };
  if (position == 0) {
    if (!key.missing()) return error("ERR item exists");
    auto filter = TrustedFilter::FromHeader(data, GreatestBytes(ctx));
    if (!filter.ok()) return bad(filter.status());
    key.Set(std::move(*filter));
  } else {
    if (key.missing()) return error(kNotFound);
    if (!key->partial() || static_cast<uint64_t>(position) != key->received() + 1) {
      return error("ERR invalid position: chunks are taken one after the other");
    }
    if (const Status status = key->AppendChunk(data); !status.ok()) return bad(status);
    // One that was moved here may lack what was added there meanwhile; one of a log may be
    // believed.
    TrustLoaded(ctx, key.get());
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.loadchunk", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

constexpr char kPerItem[] = "O(n), where n is the number of items";

constexpr Command kCommands[] = {
    {"tamis.reserve", Run<Reserve>, -4, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the capacity",
     "Makes an empty filter; with GUARD its no is believed from TAMIS.TRUST until adds may be lost",
     "key error_rate:double capacity:integer [TYPE type] [SEED seed:integer] [GUARD]"},
    {"tamis.add", Run<Add>, -3, "write deny-oom", "write tamis", "1.0.0", kPerItem,
     "Adds a copy of each item: 1 added, 0 added though perhaps there already, -1 full; makes no "
     "filter",
     "key item..."},
    {"tamis.del", Run<Erase>, -3, "write", "write tamis", "1.0.0", kPerItem,
     "Erases one copy of each item: 1 erased, 0 was not there, -1 not erased, since its add may be "
     "lost",
     "key item..."},
    {"tamis.delif", Run<EraseOfGeneration>, -4, "write", "write tamis", "1.0.0", kPerItem,
     "Erases one copy of each item, -1 unless the filter is the one whose generation was read",
     "key generation:integer item..."},
    {"tamis.generation", Run<Generation>, 2, "readonly fast", "read fast tamis", "1.0.0", "O(1)",
     "Tells by a number which filter this is, for TAMIS.DELIF; 0 = there is none", "key",
     "dont_cache"},
    {"tamis.check", Run<Check>, -3, "readonly fast", "read fast tamis", "1.0.0", kPerItem,
     "Says of each item: 1 perhaps, 0 certainly not, -1 unknown, ask the database; of any filter",
     "key item..."},
    {"tamis.rebuild", Run<Rebuild>, -3, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the capacity or the number of items",
     "Fills a new filter beside the old one and puts it in its place, believed",
     "key <START error_rate:double capacity:integer [TYPE type] [SEED seed:integer] "
     "[ID id:integer]|ADD item...|COMMIT [ID id:integer] [MARK mark]|ABORT [ID id:integer]>"},
    {"tamis.trust", Run<Trust>, 2, "write fast", "write fast tamis", "1.0.0", "O(1)",
     "Says that a filter holds all that it should, so that its no is believed again", "key"},
    {"tamis.mark", Run<Mark>, -3, "write fast deny-oom", "write fast tamis", "1.0.0", "O(1)",
     "Notes how far a filter is in the log of changes that it follows; with a generation, if the "
     "filter is that one",
     "key mark [generation:integer]"},
    {"tamis.info", Run<Info>, 2, "readonly", "read tamis", "1.0.0", "O(n), where n is the size",
     "Tells of a filter", "key", "dont_cache"},
    {"tamis.loadchunk", Run<LoadChunk>, 4, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the size of the chunk; the last one reads the whole filter",
     "Takes the parts that TAMIS.SCANDUMP gave, each at the position that was asked for",
     "key position:integer data"},
    {"tamis.scandump", Run<ScanDump>, 3, "readonly", "read tamis", "1.0.0",
     "O(n), where n is the size of the filter at position 0, else that of the chunk",
     "Gives one part after the other of a filter as it is at position 0", "key position:integer",
     "dont_cache"},
    {"tamis.count", Run<Count>, 2, "readonly fast", "read fast tamis", "1.0.0", "O(1)",
     "Counts the items that a filter holds", "key"},
    {"tamis.size", Run<Size>, -3, "readonly fast", "read fast tamis", "1.0.0", "O(1)",
     "Tells how large a filter would be", "error_rate:double capacity:integer [TYPE type]", nullptr,
     Keys::kNone},
    {"tamis.union", Run<Unite>, -3, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the size of all filters",
     "Makes a filter, or adds to it, of all that the sources hold, which are alike; BF.* ones, too",
     "key source...", nullptr, Keys::kFirstIsMadeOfOthers},
};

}  // namespace

std::span<const Command> TamisCommands() { return kCommands; }

}  // namespace tamis::redis
