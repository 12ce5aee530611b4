#include "tamis/redis/tamis_commands.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/redis/bloom_type.h"
#include "tamis/redis/cuckoo_type.h"
#include "tamis/redis/filter_key.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/tamis_type.h"

namespace tamis::redis {
namespace {

using TamisKey = FilterKey<TrustedFilter>;

constexpr char kNotFound[] = "ERR not found";
constexpr char kPartial[] = "ERR the filter is being loaded: chunks are missing";
constexpr char kDefaultType[] = "blocked-quotient";

TamisKey Open(Ctx* ctx, Words words, int mode) { return {ctx, words[1], mode, tamis_type}; }

void Notify(Ctx* ctx, const char* event, String* key) {
  server.NotifyKeyspaceEvent(ctx, kNotifyModule, event, key);
}

// False, and the error is sent, unless there is a whole filter.
bool Whole(Ctx* ctx, TamisKey& key) {
  if (key.get() != nullptr && !key->partial()) return true;
  server.ReplyWithError(ctx, key.missing() ? kNotFound : key.other_type() ? kWrongType : kPartial);
  return false;
}

bool Loading(Ctx* ctx) { return (server.GetContextFlags(ctx) & kFlagLoading) != 0; }

void Reserve(Ctx* ctx, Words words) {
  const auto error = [&](const std::string& text) {
    server.ReplyWithError(ctx, text.c_str());
  };
  FilterOptions options;
  long long number = 0;
  if (!ParseDouble(words[2], &options.fpr)) return error("ERR bad error rate");
  if (!ParseInteger(words[3], &number) || number < 1) return error("ERR bad capacity");
  options.capacity = static_cast<uint64_t>(number);
  std::string type = kDefaultType;
  bool guard = false;
  bool seeded = false;
  for (size_t i = 4; i < words.size(); ++i) {
    if (Is(words[i], "GUARD")) {
      guard = true;
    } else if (Is(words[i], "TYPE") && i + 1 < words.size()) {
      type = TextOf(words[++i]);
    } else if (Is(words[i], "SEED") && i + 1 < words.size()) {
      if (!ParseInteger(words[++i], &number)) return error("ERR bad seed");
      options.seed = static_cast<uint64_t>(number);
      seeded = true;
    } else {
      return error("Unknown argument received");
    }
  }
  // One that nobody knows in advance; replicas are told.
  if (!seeded) options.seed = SeedFromSystem();
  if (const Status status = options.Validate(); !status.ok()) {
    return error("ERR " + status.message());
  }
  const FilterType* found = AnyFilter::FindType(type);
  if (found != nullptr &&
      AnyFilter::BitsPerKey(*found, options.fpr) / 8 * static_cast<double>(options.capacity) >
          static_cast<double>(GreatestBytes(ctx))) {
    return error("ERR could not create filter: greater than tamis-max-bytes");
  }
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) return error(key.other_type() ? kWrongType : "ERR item exists");
  // A type that is not known may come from the wire with any bytes: they do not belong in an error.
  if (found == nullptr || found->fixed) {
    std::string names;
    for (const FilterType& known : AnyFilter::Types()) {
      if (!known.fixed) names += " " + std::string(known.name);
    }
    return error("ERR no such type; there are:" + names);
  }
  auto filter = AnyFilter::Create(type, options);
  if (!filter.ok()) return error("ERR " + filter.status().message());
  TrustedFilter::Card card;
  card.guard = guard;
  card.wanted_rate = options.fpr;
  card.capacity = options.capacity;
  key.Set(TrustedFilter(std::move(card), std::move(*filter)));
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.17g", options.fpr);
  server.Replicate(ctx, "TAMIS.RESERVE", guard ? "sclcbclc" : "sclcbcl", words[1], rate,
                   static_cast<long long>(options.capacity), "TYPE", found->name.data(),
                   found->name.size(), "SEED", static_cast<long long>(options.seed), "GUARD");
  Notify(ctx, "tamis.reserve", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Add(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  const Words items = words.subspan(2);
  std::vector<String*> added;  // what a replica has to add
  added.reserve(items.size());
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  AnyFilter& filter = key->filter();
  for (String* item : items) {
    const uint64_t hash = Hash(TextOf(item), filter.seed());
    const bool there = filter.MayContain(hash);
    const bool inserted = filter.Insert({&hash, 1}) == 1;
    if (inserted) {
      added.push_back(item);
    } else {
      ++key->counters().refused;
      // Another server has taken it, and somebody relies on that.
      if (!LimitsApply(ctx)) key->set_incomplete();
    }
    server.ReplyWithLongLong(ctx, !inserted ? -1 : there ? 0 : 1);
  }
  if (added.empty()) return;
  server.Replicate(ctx, "TAMIS.ADD", "sv", words[1], added.data(), added.size());
  Notify(ctx, "tamis.add", words[1]);
}

void Erase(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  AnyFilter& filter = key->filter();
  if (!filter.type().erases) {
    server.ReplyWithError(ctx, "ERR a filter of this type does not erase");
    return;
  }
  const Words items = words.subspan(2);
  // Where adds may be lost, an item may not be there and its erase would take away another one.
  const bool known = !LimitsApply(ctx) || Believed(ctx, *key);
  std::vector<String*> erased;  // what a replica has to erase
  erased.reserve(items.size());
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  for (String* item : items) {
    if (!known) {
      server.ReplyWithLongLong(ctx, -1);
      continue;
    }
    const uint64_t hash = Hash(TextOf(item), filter.seed());
    const bool done = TestBit(filter.Erase({&hash, 1}), 0);
    if (done) erased.push_back(item);
    server.ReplyWithLongLong(ctx, done ? 1 : 0);
  }
  if (erased.empty()) return;
  server.Replicate(ctx, "TAMIS.DEL", "sv", words[1], erased.data(), erased.size());
  Notify(ctx, "tamis.del", words[1]);
}

constexpr size_t kGroup = 256;

void ReplyUnknown(Ctx* ctx, size_t count) {
  for (size_t i = 0; i < count; ++i) server.ReplyWithLongLong(ctx, -1);
}

template <class Chain>
void CheckChain(Ctx* ctx, const Chain& chain, Words items) {
  if (chain.partial()) return ReplyUnknown(ctx, items.size());
  std::string_view texts[kGroup];
  bool answers[kGroup] = {};
  for (size_t begin = 0; begin < items.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, items.size() - begin);
    for (size_t i = 0; i < count; ++i) texts[i] = TextOf(items[begin + i]);
    chain.MayContain({texts, count}, answers);
    for (size_t i = 0; i < count; ++i) server.ReplyWithLongLong(ctx, answers[i] ? 1 : 0);
  }
}

void CheckTrusted(Ctx* ctx, TrustedFilter& trusted, Words items) {
  if (!Believed(ctx, trusted)) {
    trusted.counters().unknown += items.size();
    return ReplyUnknown(ctx, items.size());
  }
  const AnyFilter& filter = trusted.filter();
  const uint64_t seed = filter.seed();
  const auto reply = [&](bool may_contain) {
    ++(may_contain ? trusted.counters().hits : trusted.counters().misses);
    server.ReplyWithLongLong(ctx, may_contain ? 1 : 0);
  };
  if (items.size() == 1) return reply(filter.MayContain(Hash(TextOf(items[0]), seed)));
  uint64_t hashes[kGroup];
  for (size_t begin = 0; begin < items.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, items.size() - begin);
    for (size_t i = 0; i < count; ++i) hashes[i] = Hash(TextOf(items[begin + i]), seed);
    const Bitmap answers = filter.MayContain(std::span<const uint64_t>(hashes, count));
    for (size_t i = 0; i < count; ++i) reply(TestBit(answers, i));
  }
}

void Check(Ctx* ctx, Words words) {
  const Words items = words.subspan(2);
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  if (const TamisKey key = Open(ctx, words, kRead); key.get() != nullptr) {
    return CheckTrusted(ctx, *key, items);
  }
  if (const FilterKey<BloomChain> key(ctx, words[1], kRead, bloom_type); key.get() != nullptr) {
    return CheckChain(ctx, *key, items);
  }
  if (const FilterKey<CuckooChain> key(ctx, words[1], kRead, cuckoo_type); key.get() != nullptr) {
    return CheckChain(ctx, *key, items);
  }
  ReplyUnknown(ctx, items.size());
}

void Trust(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  if (key->card().incomplete) {
    server.ReplyWithError(ctx, "ERR an add was refused here that another server took: "
                               "fill a new filter");
    return;
  }
  if (Loading(ctx)) {
    TrustLoaded(ctx, key.get());
  } else {
    key->Trust(TimeOfTrust());
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.trust", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Mark(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  const std::string_view mark = TextOf(words[2]);
  if (mark.size() > 1024) {
    server.ReplyWithError(ctx, "ERR a mark has at most 1024 bytes");
    return;
  }
  if (mark != key->card().mark) {
    key->set_mark(mark);
    server.ReplicateVerbatim(ctx);
    Notify(ctx, "tamis.mark", words[1]);
  }
  server.ReplyWithSimpleString(ctx, "OK");
}

void Info(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead);
  if (!Whole(ctx, key)) return;
  const AnyFilter& filter = key->filter();
  const TrustedFilter::Card& card = key->card();
  const char* state = card.incomplete ? "incomplete" : Believed(ctx, *key) ? "trusted"
                                                                           : "not trusted";
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
  server.ReplyWithMap(ctx, 15);
  text("Type", filter.type().name);
  text("State", state);
  number("Guard", card.guard ? 1 : 0);
  text("Mark", card.mark);
  number("Bytes", key->SizeBytes());
  number("Capacity", card.capacity);
  number("Items", filter.Count());
  real("Fill", filter.Fill());
  real("Wanted rate", card.wanted_rate);
  real("Expected rate", filter.ExpectedFpr());
  number("Hits", key->counters().hits);
  number("Misses", key->counters().misses);
  number("Unknown", key->counters().unknown);
  number("Refused", key->counters().refused);
  number("Stuck", filter.StuckErases());
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
    // One that was moved here may lack what was added there meanwhile; one of a log may be believed.
    if (!key->partial() && key->card().was_trusted) TrustLoaded(ctx, key.get());
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.loadchunk", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

constexpr char kPerItem[] = "O(n), where n is the number of items";

constexpr Command kCommands[] = {
    {"tamis.reserve", Run<Reserve>, -4, "write deny-oom", "write", "1.0.0",
     "O(n), where n is the capacity",
     "Makes an empty filter; with GUARD its no is believed from TAMIS.TRUST until adds may be lost",
     "key error_rate:double capacity:integer [TYPE type] [SEED seed:integer] [GUARD]"},
    {"tamis.add", Run<Add>, -3, "write deny-oom", "write", "1.0.0", kPerItem,
     "Adds a copy of each item: 1 added, 0 added though perhaps there already, -1 full; makes no "
     "filter",
     "key item..."},
    {"tamis.del", Run<Erase>, -3, "write", "write", "1.0.0", kPerItem,
     "Erases one copy of each item: 1 erased, 0 was not there, -1 not erased, since its add may be "
     "lost",
     "key item..."},
    {"tamis.check", Run<Check>, -3, "readonly fast", "read", "1.0.0", kPerItem,
     "Says of each item: 1 perhaps, 0 certainly not, -1 unknown, ask the database; of any filter",
     "key item..."},
    {"tamis.trust", Run<Trust>, 2, "write fast", "write", "1.0.0", "O(1)",
     "Says that a filter holds all that it should, so that its no is believed again", "key"},
    {"tamis.mark", Run<Mark>, 3, "write fast deny-oom", "write", "1.0.0", "O(1)",
     "Notes how far a filter is in the log of changes that it follows", "key mark"},
    {"tamis.info", Run<Info>, 2, "readonly", "read", "1.0.0", "O(n), where n is the size",
     "Tells of a filter", "key", "dont_cache"},
    {"tamis.loadchunk", Run<LoadChunk>, 4, "write deny-oom", "write", "1.0.0",
     "O(n), where n is the size of the chunk; the last one reads the whole filter",
     "Takes a filter in parts, as a rewritten log has them", "key position:integer data"},
};

}  // namespace

std::span<const Command> TamisCommands() { return kCommands; }

}  // namespace tamis::redis
