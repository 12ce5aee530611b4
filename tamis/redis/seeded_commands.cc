#include "tamis/redis/seeded_commands.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/redis/chain_commands.h"
#include "tamis/redis/option_words.h"
#include "tamis/redis/seeded_chain.h"

namespace tamis::redis {
namespace {

using SeededKey = FilterKey<SeededChain>;
using Added = SeededChain::Added;

constexpr char kTooLarge[] = "ERR operation exceeds bloom object memory limit";
constexpr char kRateRange[] = "ERR (0 < error rate range < 1)";
constexpr char kTighteningRange[] = "ERR (0 < tightening ratio range < 1)";
constexpr char kCapacityZero[] = "ERR (capacity should be larger than 0)";

constexpr int kNotifyGeneric = 1 << 2;  // the class of the events of valkey-bloom

SeededKey Open(Ctx* ctx, Words words, int mode) { return {ctx, words[1], mode}; }

uint64_t GreatestSeededBytes(Ctx* ctx) {
  if (!LimitsApply(ctx)) return ~uint64_t{0};
  return std::min(GreatestBytes(ctx), static_cast<uint64_t>(settings.seeded_max_bytes));
}

SeededChain::Options DefaultOptions() {
  SeededChain::Options options;
  options.error_rate = settings.bf_error_rate;
  options.capacity = static_cast<uint64_t>(settings.bf_initial_size);
  options.expansion = static_cast<uint32_t>(settings.bf_expansion_factor);
  for (size_t i = 0; i < options.seed.size(); i += 8) {
    const uint64_t random = SeedFromSystem();
    std::memcpy(options.seed.data() + i, &random, sizeof(random));
  }
  return options;
}

const char* ErrorOf(Added added) {
  switch (added) {
    case Added::kFull:
      return "ERR non scaling filter is full";
    case Added::kTooLarge:
      return kTooLarge;
    case Added::kRateIsZero:
      return "ERR false positive degrades to 0 on scale out";
    case Added::kBadCapacity:
      return "ERR bad capacity";
    default:
      return kNoMemory;
  }
}

void Event(Ctx* ctx, const char* event, String* key) {
  server.NotifyKeyspaceEvent(ctx, kNotifyGeneric, event, key);
}

// With all that depends on settings, as valkey-bloom does.
void ReplicateCreation(Ctx* ctx, String* key, const SeededChain::Options& options) {
  char rate[32];
  char tightening[32];
  std::snprintf(rate, sizeof(rate), "%.17g", options.error_rate);
  std::snprintf(tightening, sizeof(tightening), "%.17g", options.tightening);
  const auto capacity = static_cast<long long>(options.capacity);
  const auto* seed = reinterpret_cast<const char*>(options.seed.data());
  if (options.expansion == 0) {
    server.Replicate(ctx, "BF.INSERT", "sclcccccbc", key, "CAPACITY", capacity, "ERROR", rate,
                     "TIGHTENING", tightening, "SEED", seed, options.seed.size(), "NONSCALING");
  } else {
    server.Replicate(ctx, "BF.INSERT", "sclcccccbcl", key, "CAPACITY", capacity, "ERROR", rate,
                     "TIGHTENING", tightening, "SEED", seed, options.seed.size(), "EXPANSION",
                     static_cast<long long>(options.expansion));
  }
}

// nullptr, or the error.
const char* Create(Ctx* ctx, String* name, SeededKey& key, const SeededChain::Options& options) {
  const uint64_t bytes = SeededChain::FirstSizeBytes(options);
  if (bytes == 0 || bytes > GreatestSeededBytes(ctx)) return kTooLarge;
  auto chain = SeededChain::Create(options);
  if (!chain.ok()) {
    ItemLost(ctx, key);
    return kNoMemory;
  }
  key.Set(std::move(*chain));
  ReplicateCreation(ctx, name, options);
  Event(ctx, "bloom.reserve", name);
  return nullptr;
}

bool OpenToAdd(Ctx* ctx, String* name, SeededKey& key, const SeededChain::Options& options,
               bool create) {
  return OpenForItems(ctx, key, create,
                      [&](SeededKey& missing) { return Create(ctx, name, missing, options); });
}

// False when it could not be added, and the error is sent.
bool AddItem(Ctx* ctx, SeededKey& key, const String* item, bool* is_new) {
  const Added added = key->Add(TextOf(item), GreatestSeededBytes(ctx));
  *is_new = added == Added::kNew;
  if (*is_new || added == Added::kPerhaps) {
    server.ReplyWithLongLong(ctx, *is_new ? 1 : 0);
    return true;
  }
  if (added != Added::kFull) ItemLost(ctx, key);
  server.ReplyWithError(ctx, ErrorOf(added));
  return false;
}

// Replies with an array that ends at the first error.
void AddItems(Ctx* ctx, Words words, Words items, const SeededChain::Options& options,
              bool create) {
  SeededKey key = Open(ctx, words, kRead | kWrite);
  std::vector<String*> added;  // items that a replica has to add
  if (!MakeRoom(ctx, key, items.size(), &added)) return;
  if (!OpenToAdd(ctx, words[1], key, options, create)) return;
  server.ReplyWithArray(ctx, kPostponedLength);
  long replies = 0;
  for (String* item : items) {
    bool is_new = false;
    const bool done = AddItem(ctx, key, item, &is_new);
    ++replies;
    if (is_new) added.push_back(item);
    if (!done) break;
  }
  server.ReplySetArrayLength(ctx, replies);
  if (added.empty()) return;
  server.Replicate(ctx, "BF.MADD", "sv", words[1], added.data(), added.size());
  Event(ctx, "bloom.add", words[1]);
}

// A number after a word, whose errors differ for zero and for what is no number. False, and the
// error is sent, when it is wrong.
bool ReadCapacity(Ctx* ctx, const String* word, uint64_t* capacity) {
  long long number = 0;
  const bool is_number = ParseInteger(word, &number);
  if (is_number && number >= 1) {
    *capacity = static_cast<uint64_t>(number);
    return true;
  }
  server.ReplyWithError(ctx, is_number && number == 0 ? kCapacityZero : "ERR bad capacity");
  return false;
}

bool ReadRatio(Ctx* ctx, const String* word, const char* bad, const char* range, double* ratio) {
  const bool is_number = ParseDouble(word, ratio);
  if (is_number && IsRate(*ratio)) return true;
  server.ReplyWithError(ctx, is_number ? range : bad);
  return false;
}

bool ReadRate(Ctx* ctx, const String* word, double* rate) {
  return ReadRatio(ctx, word, "ERR bad error rate", kRateRange, rate);
}

bool ReadExpansion(Ctx* ctx, const String* word, uint32_t* expansion) {
  long long number = 0;
  if (ParseInteger(word, &number) && number >= 1 &&
      number <= std::numeric_limits<uint32_t>::max()) {
    *expansion = static_cast<uint32_t>(number);
    return true;
  }
  server.ReplyWithError(ctx, "ERR bad expansion");
  return false;
}

struct InsertWords {
  SeededChain::Options options;
  bool no_create = false;
  uint64_t scale_to = 0;  // 0 = not asked
  Words items;
};

// Reads the option at words[*i], and its value. False, and the error is sent, when it is wrong.
bool ReadInsertOption(Ctx* ctx, Words words, size_t* i, InsertWords* insert) {
  const String* name = words[*i];
  SeededChain::Options& options = insert->options;
  if (Is(name, "NOCREATE")) return insert->no_create = true;
  if (Is(name, "NONSCALING")) {
    options.expansion = 0;
    return true;
  }
  constexpr const char* kWithValue[] = {"ERROR", "TIGHTENING", "CAPACITY",
                                        "SEED",  "EXPANSION",  "VALIDATESCALETO"};
  if (!std::ranges::any_of(kWithValue, [name](const char* known) { return Is(name, known); })) {
    server.ReplyWithError(ctx, "ERR unknown argument received");
    return false;
  }
  if (++*i == words.size()) {
    server.WrongArity(ctx);
    return false;
  }
  const String* value = words[*i];
  if (Is(name, "ERROR")) return ReadRate(ctx, value, &options.error_rate);
  if (Is(name, "TIGHTENING")) {
    return ReadRatio(ctx, value, "ERR bad tightening ratio", kTighteningRange, &options.tightening);
  }
  if (Is(name, "CAPACITY")) return ReadCapacity(ctx, value, &options.capacity);
  if (Is(name, "EXPANSION")) return ReadExpansion(ctx, value, &options.expansion);
  if (Is(name, "VALIDATESCALETO")) return ReadCapacity(ctx, value, &insert->scale_to);
  const std::string_view seed = TextOf(value);
  if (seed.size() != options.seed.size()) {
    server.ReplyWithError(ctx, "ERR invalid seed");
    return false;
  }
  std::memcpy(options.seed.data(), seed.data(), seed.size());
  return true;
}

// False, and the error is sent, when the words are not right.
bool ReadInsert(Ctx* ctx, Words words, InsertWords* insert) {
  insert->options = DefaultOptions();
  size_t i = 2;
  for (; i < words.size() && !Is(words[i], "ITEMS"); ++i) {
    if (!ReadInsertOption(ctx, words, &i, insert)) return false;
  }
  if (i + 1 == words.size()) {  // ITEMS, and none
    server.WrongArity(ctx);
    return false;
  }
  if (i < words.size()) insert->items = words.subspan(i + 1);
  return true;
}

// False, and the error is sent, unless such a filter could grow so far.
bool MayScaleTo(Ctx* ctx, const InsertWords& insert) {
  if (insert.scale_to == 0) return true;
  const char* wrong = nullptr;
  if (insert.options.expansion == 0) {
    wrong = "ERR cannot use NONSCALING and VALIDATESCALETO options together";
  } else if (LimitsApply(ctx)) {
    switch (SeededChain::GrowthOf(insert.options, insert.scale_to, GreatestSeededBytes(ctx)).end) {
      case Added::kNew:
        return true;
      case Added::kRateIsZero:
        wrong = "ERR provided VALIDATESCALETO causes false positive to degrade to 0";
        break;
      case Added::kBadCapacity:
        wrong = "ERR bad capacity";
        break;
      default:
        wrong = "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit";
    }
  }
  if (wrong != nullptr) server.ReplyWithError(ctx, wrong);
  return wrong == nullptr;
}

uint64_t MaxScaledCapacity(const SeededChain& chain) {
  const auto limit =
      std::min(GreatestBytes(nullptr), static_cast<uint64_t>(settings.seeded_max_bytes));
  return SeededChain::GrowthOf(chain.FirstOptions(), ~uint64_t{0}, limit).capacity;
}

void ReplyNumber(Ctx* ctx, uint64_t number) {
  server.ReplyWithLongLong(ctx, static_cast<long long>(number));
}

void Load(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  SeededKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) {
    return error(key.other_type() ? kWrongType : "BUSYKEY Target key name already exists.");
  }
  auto chain = SeededChain::FromDump(TextOf(words[2]));
  if (!chain.ok()) {
    server.Log(ctx, "notice", "BF.LOAD: %s", chain.status().message().c_str());
    CommandRefused(ctx, true);
    switch (chain.status().code()) {
      case StatusCode::kFailedPrecondition:
        return error("ERR bloom object decoding failed. Unsupported version");
      case StatusCode::kResourceExhausted:
        return error(kNoMemory);
      default:
        return error("ERR bloom object decoding failed");
    }
  }
  if (chain->SizeBytes() > GreatestSeededBytes(ctx)) return error(kTooLarge);
  key.Set(std::move(*chain));
  server.ReplicateVerbatim(ctx);
  Event(ctx, "bloom.reserve", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

constexpr Command kCommands[] = {
    {"bf.load", Run<Load>, 3, "write deny-oom", "write bloom", "1.0.0",
     "O(n), where n is the size of the dump",
     "Makes a filter of valkey-bloom's kind from the value in its log", "key dump"},
};

}  // namespace

bool MakesSeeded(Ctx* ctx) { return settings.valkey_bloom && LimitsApply(ctx); }

bool IsSeeded(Ctx* ctx, String* name) { return SeededKey(ctx, name, kRead).get() != nullptr; }

bool HasSeededWords(Words words) {
  for (const String* word : words.subspan(2)) {
    if (Is(word, "ITEMS")) return false;
    if (Is(word, "SEED") || Is(word, "TIGHTENING") || Is(word, "VALIDATESCALETO")) return true;
  }
  return false;
}

void SeededReserve(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  if (words.size() > 6) {
    server.WrongArity(ctx);
    return;
  }
  SeededChain::Options options = DefaultOptions();
  if (!ReadRate(ctx, words[2], &options.error_rate)) return;
  if (!ReadCapacity(ctx, words[3], &options.capacity)) return;
  if (words.size() == 5 && Is(words[4], "NONSCALING")) {
    options.expansion = 0;
  } else if (words.size() == 6 && Is(words[4], "EXPANSION")) {
    if (!ReadExpansion(ctx, words[5], &options.expansion)) return;
  } else if (words.size() > 4) {
    return error("ERROR");
  }
  SeededKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) return error(key.other_type() ? kWrongType : "ERR item exists");
  if (const char* wrong = Create(ctx, words[1], key, options)) return error(wrong);
  server.ReplyWithSimpleString(ctx, "OK");
}

void SeededAdd(Ctx* ctx, Words words) {
  SeededKey key = Open(ctx, words, kRead | kWrite);
  if (!OpenToAdd(ctx, words[1], key, DefaultOptions(), true)) return;
  bool is_new = false;
  if (!AddItem(ctx, key, words[2], &is_new) || !is_new) return;
  server.ReplicateVerbatim(ctx);
  Event(ctx, "bloom.add", words[1]);
}

void SeededAddMany(Ctx* ctx, Words words) {
  AddItems(ctx, words, words.subspan(2), DefaultOptions(), true);
}

void SeededInsert(Ctx* ctx, Words words) {
  InsertWords insert;
  if (!ReadInsert(ctx, words, &insert)) return CommandRefused(ctx, true);
  if (!MayScaleTo(ctx, insert)) return;
  AddItems(ctx, words, insert.items, insert.options, !insert.no_create);
}

void SeededExists(Ctx* ctx, Words words) {
  const SeededKey key = Open(ctx, words, kRead);
  if (key.get() == nullptr) {
    // RedisBloom answers 0 for a key of another type, and so do the filters of its kind here.
    if (Answers(ctx, key)) server.ReplyWithBool(ctx, false);
    return;
  }
  server.ReplyWithLongLong(ctx, key->MayContain(TextOf(words[2])) ? 1 : 0);
}

void SeededExistMany(Ctx* ctx, Words words) {
  const Words items = words.subspan(2);
  const SeededKey key = Open(ctx, words, kRead);
  if (!Answers(ctx, key)) return;
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  if (key.get() == nullptr) {
    for (size_t i = 0; i < items.size(); ++i) server.ReplyWithBool(ctx, false);
    return;
  }
  ForAnswers(*key, items, [ctx](bool perhaps) { server.ReplyWithLongLong(ctx, perhaps ? 1 : 0); });
}

void SeededInfo(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  const SeededKey key = Open(ctx, words, kRead);
  if (key.get() == nullptr) return error(key.missing() ? kNotFound : kWrongType);
  const SeededChain& chain = *key;
  // The last two are those of filters that scale.
  struct Field {
    const char* word;
    const char* name;
    void (*reply)(Ctx*, const SeededChain&);
  };
  static constexpr Field kFields[] = {
      {"CAPACITY", "Capacity",
       [](Ctx* to, const SeededChain& of) { ReplyNumber(to, of.Capacity()); }},
      {"SIZE", "Size", [](Ctx* to, const SeededChain& of) { ReplyNumber(to, of.SizeBytes()); }},
      {"FILTERS", "Number of filters",
       [](Ctx* to, const SeededChain& of) { ReplyNumber(to, of.links().size()); }},
      {"ITEMS", "Number of items inserted",
       [](Ctx* to, const SeededChain& of) { ReplyNumber(to, of.size()); }},
      {"ERROR", "Error rate",
       [](Ctx* to, const SeededChain& of) { server.ReplyWithDouble(to, of.error_rate()); }},
      {"EXPANSION", "Expansion rate",
       [](Ctx* to, const SeededChain& of) {
         if (of.scaling()) {
           server.ReplyWithLongLong(to, of.expansion());
         } else {
           server.ReplyWithNull(to);
         }
       }},
      {"TIGHTENING", "Tightening ratio",
       [](Ctx* to, const SeededChain& of) { server.ReplyWithDouble(to, of.tightening()); }},
      {"MAXSCALEDCAPACITY", "Max scaled capacity",
       [](Ctx* to, const SeededChain& of) { ReplyNumber(to, MaxScaledCapacity(of)); }},
  };
  const std::span<const Field> fields(kFields, chain.scaling() ? 8 : 6);
  if (words.size() == 2) {
    server.ReplyWithArray(ctx, static_cast<long>(2 * fields.size()));
    for (const Field& field : fields) {
      server.ReplyWithSimpleString(ctx, field.name);
      field.reply(ctx, chain);
    }
    return;
  }
  for (const Field& field : fields) {
    if (Is(words[2], field.word)) return field.reply(ctx, chain);
  }
  error("ERR invalid information value");
}

void SeededCard(Ctx* ctx, Words words) {
  const SeededKey key = Open(ctx, words, kRead);
  if (key.other_type()) {
    server.ReplyWithError(ctx, kWrongType);
    return;
  }
  server.ReplyWithLongLong(ctx, key.missing() ? 0 : static_cast<long long>(key->size()));
}

void SeededRefuse(Ctx* ctx, Words words) {
  const SeededKey key = Open(ctx, words, kRead);
  server.ReplyWithError(ctx, key.get() == nullptr
                                 ? kWrongType
                                 : "ERR a filter of valkey-bloom's kind has none: use DUMP and "
                                   "RESTORE, or BF.INFO");
}

std::span<const Command> SeededCommands() { return kCommands; }

}  // namespace tamis::redis
