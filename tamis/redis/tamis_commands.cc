#include "tamis/redis/tamis_commands.h"

#include <algorithm>
#include <bit>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/clock.h"
#include "tamis/redis/cuckoo_chain.h"
#include "tamis/redis/dump_commands.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/item_groups.h"
#include "tamis/redis/metrics.h"
#include "tamis/redis/option_words.h"
#include "tamis/redis/rebuild_command.h"
#include "tamis/redis/seeded_chain.h"
#include "tamis/redis/server_memory.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/slice_command.h"
#include "tamis/redis/tamis_key.h"
#include "tamis/redis/trust.h"
#include "tamis/redis/trusted_keys.h"
#include "tamis/redis/union_command.h"
#include "tamis/redis/wanted_filter.h"

namespace tamis::redis {
namespace {

// All options are said: replicas may have other defaults.
void ReplicateReserve(Ctx* ctx, String* name, const WantedFilter& wanted) {
  const auto replicate = [&](const char* format, auto... more) {
    server.Replicate(ctx, "TAMIS.RESERVE", format, name, wanted.Rate().c_str(),
                     static_cast<long long>(wanted.options.capacity), "TYPE",
                     wanted.type->name.data(), wanted.type->name.size(), "SEED",
                     static_cast<long long>(wanted.options.seed), more...);
  };
  if (wanted.window_s == 0) {
    replicate(wanted.guard ? "sclcbclc" : "sclcbcl", "GUARD");
  } else {
    replicate(wanted.guard ? "sclcbclclclc" : "sclcbclclcl", "WINDOW",
              static_cast<long long>(wanted.window_s), "SLICES",
              static_cast<long long>(wanted.slices), "GUARD");
  }
}

void Reserve(Ctx* ctx, Words words) {
  WantedFilter wanted;
  if (!ReadWanted(ctx, words.subspan(2), Purpose::kReserve, &wanted)) return;
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) {
    server.ReplyWithError(ctx, key.other_type() ? kWrongType : "ERR item exists");
    return;
  }
  std::optional<AnyFilter> filter = Create(ctx, wanted);
  if (!filter) return;
  TrustedFilter::Metadata metadata;
  metadata.guard = wanted.guard;
  metadata.wanted_rate = wanted.options.fpr;
  metadata.capacity = wanted.options.capacity;
  if (wanted.window_s == 0) {
    key.Set(TrustedFilter(std::move(metadata), std::move(*filter)));
  } else {
    key.Set(TrustedFilter(std::move(metadata), std::move(*filter),
                          Window(wanted.window_s, wanted.slices, PresentMoment())));
  }
  ReplicateReserve(ctx, words[1], wanted);
  if (key->window() != nullptr) ReplicateSlice(ctx, words[1], *key);
  Notify(ctx, "tamis.reserve", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

// Another server accepted an add that this one refuses, so a client relies on it: the filter here
// is marked as incomplete.
void ItemsLost(Ctx* ctx, TrustedFilter& filter) {
  if (LimitsApply(ctx) || filter.metadata().incomplete) return;
  filter.set_incomplete();
  CommandLost(ctx, true);
}

void Add(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  if (const char* error = BeginSliceIfDue(ctx, words[1], *key); error != nullptr) {
    server.ReplyWithError(ctx, error);
    return;
  }
  const Words items = words.subspan(2);
  std::vector<String*> added;  // items that a replica has to add
  try {
    added.reserve(items.size());
  } catch (const std::bad_alloc&) {
    ItemsLost(ctx, *key);
    server.ReplyWithError(ctx, kNoMemory);
    return;
  }
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t begin) {
    key->Prefetch(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      const TrustedFilter::Added done = key->Add(texts[i]);
      if (done != TrustedFilter::Added::kFull) {
        added.push_back(items[begin + i]);
      } else {
        ++key->counters().refused;
        ++metrics.adds_refused;
        ItemsLost(ctx, *key);
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

// Whether an erase may take place. If adds may be lost, the item may be missing, and its erase
// would remove another item with the same fingerprint. The same holds shortly after a commit, for
// erases that were sent for the filter before it (tamis-erase-delay). An item whose age is not
// known may have left the window of its filter.
bool MayErase(Ctx* ctx, const TrustedFilter& filter) {
  if (filter.window() != nullptr && !faults.erases_of_any_age) return false;
  if (!LimitsApply(ctx) || faults.erases_when_unsure) return true;
  if (!Believed(ctx, filter)) return false;
  const TrustedFilter::Metadata& metadata = filter.metadata();
  const int64_t delay = settings.erase_delay * 1000;
  if (metadata.rebuilt_time == 0 || delay == 0) return true;
  const Moment now = PresentMoment();
  const auto rebuilt = static_cast<int64_t>(metadata.rebuilt_time);
  if (faults.delay_by_wall_clock || metadata.rebuilt_running_ms == 0) {
    return now.wall_ms >= rebuilt + delay;  // the commit was before this process
  }
  return now.running_ms >= metadata.rebuilt_running_ms + delay;
}

// kKept when memory does not suffice, too.
TrustedFilter::Erased EraseIfMemory(TrustedFilter& filter, std::string_view item,
                                    uint64_t since) try {
  return filter.Erase(item, since);
} catch (const std::bad_alloc&) {
  return TrustedFilter::Erased::kKept;
}

// TAMIS.DELIF erases the key of a row that the filter held when the row was deleted. One that finds
// nothing was sent for a row that was not deleted, or twice. Others of that kind may have found the
// fingerprint of a row that exists and taken it away: the filter is not believed any more.
// TAMIS.DEL proves nothing: its key may have gone with the filter before.
void StrayErase(Ctx* ctx, String* name, TrustedFilter& filter) {
  if (!filter.metadata().guard || !LimitsApply(ctx) || !Believed(ctx, filter)) return;
  if (faults.stray_erases_are_believed) return;
  filter.Doubt();
  server.Replicate(ctx, "TAMIS.DOUBT", "s", name);
  Notify(ctx, "tamis.doubt", name);
  const std::string_view text = TextOf(name);
  server.Log(ctx, "warning",
             "filter %.*s is no longer trusted: an erase was sent for a key that it does not hold. "
             "Send TAMIS.DELIF only for rows that a DELETE has deleted, once each; then load the "
             "filter again",
             static_cast<int>(text.size()), text.data());
}

// `since`: for a filter with a window, the slice as which it was newest before the items were
// added. True when the filter did not hold one of the items.
bool EraseItems(Ctx* ctx, Words words, TamisKey& key, Words items, bool may_erase,
                uint64_t since = 0) {
  if (!key->empty() && !key->filter().type().erases) {
    server.ReplyWithError(ctx,
                          "ERR a filter of this type does not erase: make one of another TYPE");
    return false;
  }
  using Erased = TrustedFilter::Erased;
  std::vector<String*> erased;  // items that a replica has to erase
  erased.reserve(items.size());
  bool stray = false;
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t begin) {
    if (may_erase) key->Prefetch(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      const Erased done = may_erase ? EraseIfMemory(*key, texts[i], since) : Erased::kKept;
      if (done == Erased::kKept) {
        ++key->counters().skipped;
        ++metrics.erases_skipped;
      } else if (done == Erased::kErased) {
        erased.push_back(items[begin + i]);
      } else {
        stray = true;
      }
      server.ReplyWithLongLong(ctx, done == Erased::kErased ? 1 : done == Erased::kAbsent ? 0 : -1);
    }
  });
  if (!erased.empty()) {
    if (key->window() != nullptr) {
      ReplicateErase(ctx, words[1], since, erased);
    } else {
      server.Replicate(ctx, "TAMIS.DEL", "sv", words[1], erased.data(), erased.size());
    }
    Notify(ctx, "tamis.del", words[1]);
  }
  return stray;
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
    server.ReplyWithError(ctx, "ERR bad generation: send the number that TAMIS.GENERATION gave");
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
  // A filter of that generation holds the key of the row that was deleted; with a window, a slice
  // that was the newest before the key was added, or a later one does.
  const std::optional<uint64_t> slice =
      key->window() != nullptr          ? key->SliceOf(generation, PresentMoment())
      : key->generation() == generation ? std::optional<uint64_t>(0)
                                        : std::nullopt;
  const bool same = slice || faults.erases_of_other_generation;
  const bool stray =
      EraseItems(ctx, words, key, words.subspan(3), same && Believed(ctx, *key), slice.value_or(0));
  if (stray) StrayErase(ctx, words[1], *key);
}

void Generation(Ctx* ctx, Words words) {
  const TamisKey key = Open(ctx, words, kRead);
  const bool whole = key.get() != nullptr && !key->empty();
  server.ReplyWithLongLong(ctx, whole ? static_cast<long long>(key->generation()) : 0);
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
  bool partial = false;
  if constexpr (requires { chain.partial(); }) partial = chain.partial();
  if (partial || !ChainsBelieved()) return ReplyUnknown(ctx, items.size());
  ForAnswers(chain, items, [ctx](bool may_contain) { ReplyMayContain(ctx, may_contain); });
}

void CheckTrusted(Ctx* ctx, TrustedFilter& trusted, Words items) {
  TrustedFilter::Counters& counters = trusted.counters();
  if (!Believed(ctx, trusted)) {
    counters.unknown += items.size();
    return ReplyUnknown(ctx, items.size());
  }
  const uint64_t seed = trusted.filter().seed();
  const Moment now = trusted.window() == nullptr ? Moment{} : PresentMoment();
  const auto reply = [&](bool may_contain) {
    ++(may_contain ? counters.hits : counters.misses);
    ReplyMayContain(ctx, may_contain);
  };
  if (items.size() == 1) return reply(trusted.MayContain(Hash(TextOf(items[0]), seed), now));
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t) {
    uint64_t hashes[kGroup];
    for (size_t i = 0; i < texts.size(); ++i) hashes[i] = Hash(texts[i], seed);
    Bitmap answers;
    try {
      answers = trusted.MayContain(std::span<const uint64_t>(hashes, texts.size()), now);
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
  if (const FilterKey<SeededChain> key(ctx, words[1], kRead); key.get() != nullptr) {
    return CheckChain(ctx, *key, items);
  }
  ReplyUnknown(ctx, items.size());
}

void Trust(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  if (key->metadata().incomplete && !faults.incomplete_is_believed) {
    server.ReplyWithError(ctx,
                          "ERR an add was refused here that another server took: "
                          "fill a new filter");
    return;
  }
  if (key->empty()) {
    server.ReplyWithError(ctx, "ERR there is only a rebuild: COMMIT it");
    return;
  }
  ListTrustedKey(ctx, words[1]);
  if (MayTrust(ctx)) key->Trust(TrustEpoch());
  server.ReplicateVerbatim(ctx);
  DoubtInOwnLog(ctx, words[1]);
  Notify(ctx, "tamis.trust", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void Doubt(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (!Whole(ctx, key)) return;
  key->Doubt();
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "tamis.doubt", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void DoubtEvery(Ctx* ctx, Words) {
  DoubtAll(ctx);
  server.ReplicateVerbatim(ctx);
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
  if (words.size() > 3 && !key->HasGeneration(generation)) {
    server.ReplyWithError(
        ctx,
        "NOGENERATION the filter is another one than when the generation was read: "
        "read mark and generation again");
    return;
  }
  const std::string_view mark = TextOf(words[2]);
  if (mark != key->metadata().mark) {
    key->set_mark(mark);
    server.Replicate(ctx, "TAMIS.MARK", "ss", words[1], words[2]);
    Notify(ctx, "tamis.mark", words[1]);
  }
  server.ReplyWithSimpleString(ctx, "OK");
}

// The false-positive rate of a filter as it is. Some types read all of their bytes to compute it;
// for a large filter it is measured instead, as the share of random hashes that the filter does not
// deny.
double RateOf(const AnyFilter& filter) {
  constexpr size_t kReadWhole = size_t{16} << 20;
  if (filter.SizeBytes() <= kReadWhole) return filter.ExpectedFpr();
  constexpr size_t kHashes = 4096;
  constexpr size_t kRounds = 2;
  std::vector<uint64_t> hashes(kHashes);
  Random random(filter.seed());
  uint64_t found = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    for (uint64_t& hash : hashes) hash = random();
    for (const uint64_t word : filter.MayContain(hashes)) found += std::popcount(word);
  }
  return static_cast<double>(found) / (kHashes * kRounds);
}

double RateNow(const TrustedFilter& trusted, Moment now) {
  const Window* const window = trusted.window();
  if (window == nullptr) return RateOf(trusted.filter());
  std::vector<double> rates;
  if (window->Lives(window->newest(), now)) rates.push_back(RateOf(trusted.filter()));
  for (const Window::Slice& slice : window->older()) {
    if (window->Lives(slice.number, now)) rates.push_back(RateOf(*slice.filter));
  }
  return Window::RateOver(rates);
}

// The rest of the lease, rounded up.
uint64_t SecondsLeft(const TrustedFilter::Rebuild& rebuild) {
  const int64_t now = PresentMoment().running_ms;
  return rebuild.lease_end_ms <= now
             ? 0
             : static_cast<uint64_t>(rebuild.lease_end_ms - now + 999) / 1000;
}

void Info(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead);
  if (!Whole(ctx, key)) return;
  const AnyFilter* filter = key->empty() ? nullptr : &key->filter();
  const TrustedFilter::Metadata& metadata = key->metadata();
  const TrustedFilter::Rebuild* rebuild = key->rebuild();
  const char* state = filter == nullptr     ? "none"
                      : metadata.incomplete ? "incomplete"
                      : Believed(ctx, *key) ? "trusted"
                                            : "not trusted";
  const char* rebuild_state = rebuild == nullptr                     ? "none"
                              : rebuild->incomplete                  ? "full"
                              : rebuild->sound_epoch != TrustEpoch() ? "adds may be lost"
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
  const Moment now = PresentMoment();
  const uint64_t items = filter == nullptr ? 0 : key->Count(now);
  const double rate = filter == nullptr ? 1 : RateNow(*key, now);  // allocates
  const Window* const window = key->window();
  server.ReplyWithMap(ctx, 24);
  text("Type", filter == nullptr ? "" : filter->type().name);
  text("State", state);
  number("Guard", metadata.guard ? 1 : 0);
  text("Mark", metadata.mark);
  number("Generation", filter == nullptr ? 0 : key->generation());
  number("Bytes", key->SizeBytes());
  number("Capacity", metadata.capacity);
  number("Items", items);
  real("Fill", metadata.capacity == 0
                   ? 0
                   : static_cast<double>(items) / static_cast<double>(metadata.capacity));
  real("Wanted rate", metadata.wanted_rate);
  real("Expected rate", rate);
  number("Hits", key->counters().hits);
  number("Misses", key->counters().misses);
  number("Unknown", key->counters().unknown);
  number("Refused", key->counters().refused);
  number("Stuck", filter == nullptr ? 0 : filter->StuckErases());
  number("Skipped erases", key->counters().skipped);
  text("Rebuild", rebuild_state);
  number("Rebuild id", rebuild == nullptr ? 0 : rebuild->id);
  number("Rebuild lease", rebuild == nullptr ? 0 : SecondsLeft(*rebuild));
  number("Rebuild items", rebuild == nullptr ? 0 : rebuild->filter->Count());
  number("Rebuild skipped erases", rebuild == nullptr ? 0 : rebuild->skipped);
  number("Window", window == nullptr ? 0 : window->seconds());
  number("Slices", window == nullptr ? 0 : window->slices());
}

void Count(Ctx* ctx, Words words) {
  TamisKey key = Open(ctx, words, kRead);
  if (!Whole(ctx, key)) return;
  server.ReplyWithLongLong(ctx,
                           key->empty() ? 0 : static_cast<long long>(key->Count(PresentMoment())));
}

void Size(Ctx* ctx, Words words) {
  WantedFilter wanted;
  if (!ReadWanted(ctx, words.subspan(1), Purpose::kSize, &wanted)) return;
  const double rate = wanted.RateAtCapacity();  // allocates
  server.ReplyWithMap(ctx, 4);
  server.ReplyWithSimpleString(ctx, "Type");
  ReplyText(ctx, wanted.type->name);
  server.ReplyWithSimpleString(ctx, "Bytes");
  const size_t bytes =
      AllocatedBytes(static_cast<size_t>(wanted.BytesOfOne())) * (wanted.slices + 1);
  server.ReplyWithLongLong(ctx, static_cast<long long>(bytes));
  server.ReplyWithSimpleString(ctx, "Bits per key");
  server.ReplyWithDouble(ctx, wanted.BitsPerKey());
  server.ReplyWithSimpleString(ctx, "Rate");
  server.ReplyWithDouble(ctx, rate);
}

constexpr char kPerItem[] = "O(n), where n is the number of items";

constexpr Command kCommands[] = {
    {"tamis.reserve", Run<Reserve>, -4, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the capacity",
     "Makes an empty filter; with GUARD its \"no\" is believed from TAMIS.TRUST until adds may be "
     "lost; with WINDOW it forgets an item after this many seconds",
     "key error_rate:double capacity:integer [TYPE type] [SEED seed:integer] [GUARD] "
     "[WINDOW seconds:integer] [SLICES slices:integer]"},
    {"tamis.add", Run<Add>, -3, "write deny-oom", "write tamis", "1.0.0", kPerItem,
     "Adds a copy of each item to an existing filter: 1 added, 0 added but perhaps there already, "
     "-1 full",
     "key item..."},
    {"tamis.del", Run<Erase>, -3, "write", "write tamis", "1.0.0", kPerItem,
     "Erases one copy of each item: 1 erased, 0 was not there, -1 not erased, since its add may be "
     "lost",
     "key item..."},
    {"tamis.delif", Run<EraseOfGeneration>, -4, "write", "write tamis", "1.0.0", kPerItem,
     "Erases one copy of each item if the filter still has this generation (with WINDOW: from the "
     "slice of this generation on), else answers -1",
     "key generation:integer item..."},
    {"tamis.generation", Run<Generation>, 2, "readonly fast", "read fast tamis", "1.0.0", "O(1)",
     "Returns the number that identifies the filter, for TAMIS.DELIF; 0 if there is none", "key",
     "dont_cache"},
    {"tamis.check", Run<Check>, -3, "readonly fast", "read fast tamis", "1.0.0", kPerItem,
     "Tests each item in a filter of any kind: 1 perhaps there, 0 certainly not, -1 unknown",
     "key item...", "dont_cache"},
    {"tamis.rebuild", Run<Rebuild>, -3, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the capacity or the number of items",
     "Fills a new filter beside the old one, and puts it in its place, trusted",
     "key <START error_rate:double capacity:integer [TYPE type] [SEED seed:integer] "
     "[ID id:integer] [LEASE seconds:integer]|ADD item...|ADDIF id:integer item...|"
     "CHECK id:integer item...|KEEP id:integer seconds:integer|COMMIT [ID id:integer] [MARK mark]|"
     "ABORT [ID id:integer]>"},
    {"tamis.trust", Run<Trust>, 2, "write fast", "write fast tamis", "1.0.0", "O(1)",
     "Declares that a filter holds all items, so that its \"no\" is believed again", "key"},
    {"tamis.doubt", Run<Doubt>, 2, "write fast", "write fast tamis", "1.0.0", "O(1)",
     "Declares that a filter with GUARD may lack adds, so that its \"no\" is not believed until "
     "TAMIS.TRUST",
     "key"},
    {"tamis.doubtall", Run<DoubtEvery>, 1, "write admin fast", "write admin fast tamis", "1.0.0",
     "O(n), where n is the number of filters that are trusted or being rebuilt",
     "Declares that all filters with GUARD may lack adds", "", nullptr, Keys::kNone},
    {"tamis.mark", Run<Mark>, -3, "write fast deny-oom", "write fast tamis", "1.0.0", "O(1)",
     "Stores the filter's position in the log of changes that it follows; with a generation only "
     "if "
     "the filter has it",
     "key mark [generation:integer]"},
    {"tamis.info", Run<Info>, 2, "readonly", "read tamis", "1.0.0", "O(n), where n is the size",
     "Describes a filter", "key", "dont_cache"},
    {"tamis.loadchunk", Run<LoadChunk>, 4, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the size of the chunk; the last one reads the whole filter",
     "Restores a filter from the parts that TAMIS.SCANDUMP returned, each at its position",
     "key position:integer data"},
    {"tamis.scandump", Run<ScanDump>, 3, "readonly", "read tamis", "1.0.0",
     "O(n), where n is the size of the filter at position 0, else that of the chunk",
     "Returns a filter part by part, as it was at position 0", "key position:integer",
     "dont_cache"},
    {"tamis.count", Run<Count>, 2, "readonly fast", "read fast tamis", "1.0.0", "O(1)",
     "Counts the items that a filter holds", "key"},
    {"tamis.size", Run<Size>, -3, "readonly fast", "read fast tamis", "1.0.0", "O(1)",
     "Returns the size that a filter would have",
     "error_rate:double capacity:integer [TYPE type] [SLICES slices:integer]", nullptr,
     Keys::kNone},
    {"tamis.slice", Run<Slice>, -5, "write", "write tamis", "1.0.0",
     "O(n), where n is the capacity of a slice or the number of items",
     "Sent by servers to replicas and logs: a slice of a window has begun, or items were erased",
     "key <BEGIN number:integer elapsed:integer time:integer|DEL number:integer item...>"},
    {"tamis.union", Run<Unite>, -3, "write deny-oom", "write tamis", "1.0.0",
     "O(n), where n is the size of all filters",
     "Makes a filter from like filters, or adds them to it; also for filters of BF.*",
     "key source...", nullptr, Keys::kFirstIsMadeOfOthers},
};

}  // namespace

std::span<const Command> TamisCommands() { return kCommands; }

}  // namespace tamis::redis
