#include "tamis/redis/bloom_commands.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/chain_commands.h"
#include "tamis/redis/option_words.h"
#include "tamis/redis/seeded_commands.h"

namespace tamis::redis {
namespace {

using BloomKey = FilterKey<BloomChain>;

// Limits for clients.
constexpr double kGreatestRate = 0.25;  // a greater one is taken as this
constexpr long long kGreatestCapacity = 1ll << 30;
constexpr long long kGreatestGrowth = 32768;
// Limits for replicated and loaded commands: other servers have other limits, and their filters
// must be made here, too.
constexpr long long kAnyCapacity = 1ll << 61;
constexpr long long kAnyGrowth = std::numeric_limits<long long>::max();

BloomKey Open(Ctx* ctx, Words words, int mode) { return {ctx, words[1], mode}; }

// Whether the key has, or is to get, a filter of valkey-bloom's kind; or what is none at all.
bool IsForSeeded(Ctx* ctx, const BloomKey& key) {
  return key.other_type() || (key.missing() && MakesSeeded(ctx));
}

long long GreatestCapacity(Ctx* ctx) { return LimitsApply(ctx) ? kGreatestCapacity : kAnyCapacity; }
long long GreatestGrowth(Ctx* ctx) { return LimitsApply(ctx) ? kGreatestGrowth : kAnyGrowth; }

// The rate of the filter, also for replicas.
void BoundRate(Ctx* ctx, BloomChain::Options* options) {
  if (LimitsApply(ctx)) options->error_rate = std::min(options->error_rate, kGreatestRate);
}

BloomChain::Options DefaultOptions() {
  return {.error_rate = settings.bf_error_rate,
          .capacity = static_cast<uint64_t>(settings.bf_initial_size),
          .growth = static_cast<uint32_t>(settings.bf_expansion_factor)};
}

// nullptr, or the error.
const char* Create(Ctx* ctx, BloomKey& key, const BloomChain::Options& options) {
  const uint64_t bytes = BloomChain::FirstLinkBytes(options);
  if (bytes == 0 || bytes > GreatestBytes(ctx)) {
    return "ERR could not create filter: greater than tamis-max-bytes";
  }
  auto chain = BloomChain::Create(options);
  if (!chain.ok()) {
    ItemLost(ctx, key);
    return "ERR Insufficient memory to create filter";
  }
  key.Set(std::move(*chain));
  return nullptr;
}

// With all that depends on settings, so that a replica of others makes the same filter.
void ReplicateCreation(Ctx* ctx, String* key, const BloomChain::Options& options) {
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.17g", options.error_rate);
  const auto capacity = static_cast<long long>(options.capacity);
  if (options.scaling && options.growth != 0) {
    server.Replicate(ctx, "BF.RESERVE", "sclcl", key, rate, capacity, "EXPANSION",
                     static_cast<long long>(options.growth));
  } else {
    server.Replicate(ctx, "BF.RESERVE", "sclc", key, rate, capacity, "NONSCALING");
  }
}

const char* ErrorOf(BloomChain::Added added) {
  switch (added) {
    case BloomChain::Added::kFull:
      return "ERR non scaling filter is full";
    case BloomChain::Added::kPartial:
      return kPartial;
    case BloomChain::Added::kTooLarge:
      return "ERR problem inserting into filter: it would be greater than tamis-max-bytes";
    default:
      return "ERR problem inserting into filter";
  }
}

// True for an item that another server has added and this one cannot.
bool IsLost(BloomChain::Added added) {
  return added == BloomChain::Added::kNoMemory || added == BloomChain::Added::kTooLarge;
}

constexpr char kCannotExpand[] = "Nonscaling filters cannot expand";

// RedisBloom keeps 32 bits of an expansion.
void Scale(bool nonscaling, std::optional<long long> expansion, BloomChain::Options* options) {
  options->scaling = !nonscaling;
  if (expansion) options->growth = static_cast<uint32_t>(*expansion);
}

// Whether RedisBloom makes a filter of it that scales by 0, which none here does.
bool ScalesByNothing(bool nonscaling, std::optional<long long> expansion) {
  return !nonscaling && expansion.value_or(0) != 0 && static_cast<uint32_t>(*expansion) == 0;
}

// False, and the error is sent, when the words are not right.
bool ReadReserve(Ctx* ctx, Words words, BloomChain::Options* options) {
  if (words.size() > 7) {
    server.WrongArity(ctx);
    return false;
  }
  long long number = 0;
  const auto error = [&](const char* text) {
    server.ReplyWithError(ctx, text);
    return false;
  };
  if (!ParseDouble(words[2], &options->error_rate)) return error("ERR bad error rate");
  if (!IsRate(options->error_rate)) {
    return error("ERR error rate must be in the range (0.000000, 1.000000)");
  }
  if (!ParseInteger(words[3], &number)) return error("ERR bad capacity");
  if (number < 1 || number > GreatestCapacity(ctx)) {
    return error("ERR capacity must be in the range [1, 1073741824]");
  }
  options->capacity = static_cast<uint64_t>(number);
  bool nonscaling = false;
  std::optional<long long> expansion;
  const Option known[] = {
      {"NONSCALING", &nonscaling},
      {.name = "EXPANSION",
       .value = &expansion,
       .bad = "ERR bad expansion",
       .no_value = "ERR no expansion"},
  };
  const OtherWords others = LimitsApply(ctx) ? OtherWords::kRefused : OtherWords::kIgnored;
  if (!ReadOptions(ctx, words, 4, known, {}, others)) return false;
  if (nonscaling && expansion.value_or(0) > 0) return error(kCannotExpand);
  if (expansion.value_or(0) < 0 || expansion.value_or(0) > GreatestGrowth(ctx) ||
      ScalesByNothing(nonscaling, expansion)) {
    return error("ERR expansion must be in the range [0, 32768]");
  }
  Scale(nonscaling, expansion, options);
  BoundRate(ctx, options);
  return true;
}

void Reserve(Ctx* ctx, Words words) {
  if (MakesSeeded(ctx)) return SeededReserve(ctx, words);
  BloomChain::Options options = DefaultOptions();
  if (!ReadReserve(ctx, words, &options)) return CommandRefused(ctx, false);
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  BloomKey key = Open(ctx, words, kRead | kWrite);
  if (key.other_type()) return error(IsSeeded(ctx, words[1]) ? "ERR item exists" : kWrongType);
  if (!key.missing()) return error("ERR item exists");
  if (const char* wrong = Create(ctx, key, options)) return error(wrong);
  ReplicateCreation(ctx, words[1], options);
  Notify(ctx, "bf.reserve", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

// False, and the error is sent, when there is no filter and none is made.
bool OpenToAdd(Ctx* ctx, String* name, BloomKey& key, BloomChain::Options options, bool create) {
  BoundRate(ctx, &options);
  return OpenForItems(ctx, key, create, [&](BloomKey& missing) {
    const char* wrong = Create(ctx, missing, options);
    if (wrong == nullptr) {
      ReplicateCreation(ctx, name, options);
      Notify(ctx, "bf.reserve", name);
    }
    return wrong;
  });
}

void Add(Ctx* ctx, Words words) {
  BloomKey key = Open(ctx, words, kRead | kWrite);
  if (IsForSeeded(ctx, key)) return SeededAdd(ctx, words);
  if (!OpenToAdd(ctx, words[1], key, DefaultOptions(), true)) return;
  const BloomChain::Added added = key->Add(TextOf(words[2]), GreatestBytes(ctx));
  if (added == BloomChain::Added::kNew) {
    server.ReplicateVerbatim(ctx);
    Notify(ctx, "bf.add", words[1]);
  } else if (added != BloomChain::Added::kPerhaps) {
    if (IsLost(added)) ItemLost(ctx, key);
    server.ReplyWithError(ctx, ErrorOf(added));
    return;
  }
  server.ReplyWithBool(ctx, added == BloomChain::Added::kNew);
}

// Replies with an array that ends at the first error.
void AddItems(Ctx* ctx, Words words, Words items, const BloomChain::Options& defaults,
              bool create) {
  BloomKey key = Open(ctx, words, kRead | kWrite);
  std::vector<String*> added;  // items that a replica has to add
  if (!MakeRoom(ctx, key, items.size(), &added)) return;
  if (!OpenToAdd(ctx, words[1], key, defaults, create)) return;
  server.ReplyWithArray(ctx, kPostponedLength);
  const uint64_t greatest_bytes = GreatestBytes(ctx);
  long replies = 0;
  bool failed = false;
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t begin) {
    if (failed) return;
    BloomChain::Added results[kGroup];
    const size_t done = key->Add(texts, greatest_bytes, results);
    for (size_t i = 0; i < done; ++i, ++replies) {
      const bool is_new = results[i] == BloomChain::Added::kNew;
      if (!is_new && results[i] != BloomChain::Added::kPerhaps) {
        if (IsLost(results[i])) ItemLost(ctx, key);
        server.ReplyWithError(ctx, ErrorOf(results[i]));
        failed = true;
      } else {
        if (is_new) added.push_back(items[begin + i]);
        server.ReplyWithBool(ctx, is_new);
      }
    }
  });
  server.ReplySetArrayLength(ctx, replies);
  if (!added.empty()) {
    server.Replicate(ctx, "BF.MADD", "sv", words[1], added.data(), added.size());
    Notify(ctx, "bf.add", words[1]);
  }
}

void AddMany(Ctx* ctx, Words words) {
  if (IsForSeeded(ctx, Open(ctx, words, kRead | kWrite))) return SeededAddMany(ctx, words);
  AddItems(ctx, words, words.subspan(2), DefaultOptions(), true);
}

void Insert(Ctx* ctx, Words words) {
  bool creates = false;
  {
    const BloomKey key = Open(ctx, words, kRead | kWrite);
    creates = key.missing();
    if (IsForSeeded(ctx, key) || (key.missing() && HasSeededWords(words))) {
      return SeededInsert(ctx, words);
    }
  }
  if (words.size() < 4) {
    server.WrongArity(ctx);
    return;
  }
  BloomChain::Options options = DefaultOptions();
  bool no_create = false;
  bool nonscaling = false;
  std::optional<long long> capacity;
  std::optional<long long> expansion;
  const String* of_seeded = nullptr;  // words for a filter that is made, and this one is there
  const Option known[] = {
      {.name = "SEED", .value = &of_seeded},
      {.name = "TIGHTENING", .value = &of_seeded},
      {.name = "VALIDATESCALETO", .value = &of_seeded},
      {"NOCREATE", &no_create},
      {"NONSCALING", &nonscaling},
      {.name = "CAPACITY",
       .value = &capacity,
       .bad = "Bad capacity",
       .least = 1,
       .greatest = GreatestCapacity(ctx)},
      {.name = "ERROR", .value = &options.error_rate, .bad = "Bad error rate"},
      {.name = "EXPANSION",
       .value = &expansion,
       .bad = "Bad expansion",
       .least = 0,
       .greatest = GreatestGrowth(ctx)},
  };
  const std::optional<size_t> end = ReadOptions(ctx, words, 2, known, "ITEMS");
  if (!end) return CommandRefused(ctx, true);
  if (creates && ScalesByNothing(nonscaling, expansion)) {
    server.ReplyWithError(ctx, "Bad expansion");
    return CommandRefused(ctx, true);
  }
  if (*end + 1 >= words.size()) {
    server.WrongArity(ctx);
    return;
  }
  if (nonscaling && expansion.value_or(0) > 0 && LimitsApply(ctx)) {
    server.ReplyWithError(ctx, kCannotExpand);
    return;
  }
  if (capacity) options.capacity = static_cast<uint64_t>(*capacity);
  Scale(nonscaling, expansion, &options);
  AddItems(ctx, words, words.subspan(*end + 1), options, !no_create);
}

// The fields that valkey-bloom has besides; they are asked for one by one alone.
void InfoOfScaling(Ctx* ctx, const BloomChain& chain, const String* word) {
  const bool of_scaling = Is(word, "TIGHTENING") || Is(word, "MAXSCALEDCAPACITY");
  if (!Is(word, "ERROR") && !(of_scaling && chain.scaling())) {
    server.ReplyWithError(ctx, "Invalid information value");
    return;
  }
  const char* name = Is(word, "ERROR")        ? "Error rate"
                     : Is(word, "TIGHTENING") ? "Tightening ratio"
                                              : "Max scaled capacity";
  if (Resp3(ctx)) {
    server.ReplyWithMap(ctx, 1);
    server.ReplyWithSimpleString(ctx, name);
  } else {
    server.ReplyWithArray(ctx, 1);
  }
  if (Is(word, "ERROR")) {
    server.ReplyWithDouble(ctx, chain.error_rate());
  } else if (Is(word, "TIGHTENING")) {
    server.ReplyWithDouble(ctx, 0.5);
  } else {
    server.ReplyWithLongLong(ctx,
                             static_cast<long long>(chain.MaxCapacity(GreatestBytes(nullptr))));
  }
}

void Info(Ctx* ctx, Words words) {
  if (words.size() > 3) {
    server.WrongArity(ctx);
    return;
  }
  const BloomKey key = Open(ctx, words, kRead);
  if (key.other_type()) return SeededInfo(ctx, words);
  if (key.missing()) {
    server.ReplyWithError(ctx, kNotFound);
    return;
  }
  struct Field {
    const char* word;
    const char* name;
  };
  constexpr Field kFields[] = {{"CAPACITY", "Capacity"},
                               {"SIZE", "Size"},
                               {"FILTERS", "Number of filters"},
                               {"ITEMS", "Number of items inserted"},
                               {"EXPANSION", "Expansion rate"}};
  const auto value = [&](size_t field) {
    const uint64_t values[] = {key->Capacity(), key->SizeBytes(), key->links().size(), key->size(),
                               key->growth()};
    if (field == 4 && !key->scaling()) {
      server.ReplyWithNull(ctx);
    } else {
      server.ReplyWithLongLong(ctx, static_cast<long long>(values[field]));
    }
  };
  if (words.size() == 2) {
    server.ReplyWithMap(ctx, std::size(kFields));
    for (size_t i = 0; i < std::size(kFields); ++i) {
      server.ReplyWithSimpleString(ctx, kFields[i].name);
      value(i);
    }
    return;
  }
  for (size_t i = 0; i < std::size(kFields); ++i) {
    if (!Is(words[2], kFields[i].word)) continue;
    if (Resp3(ctx)) {
      server.ReplyWithMap(ctx, 1);
      server.ReplyWithSimpleString(ctx, kFields[i].name);
    } else {
      server.ReplyWithArray(ctx, 1);
    }
    return value(i);
  }
  InfoOfScaling(ctx, *key, words[2]);
}

void Card(Ctx* ctx, Words words) {
  const BloomKey key = Open(ctx, words, kRead);
  if (key.other_type()) return SeededCard(ctx, words);
  server.ReplyWithLongLong(ctx, key.missing() ? 0 : static_cast<long long>(key->size()));
}

void Debug(Ctx* ctx, Words words) {
  const BloomKey key = Open(ctx, words, kRead);
  if (key.other_type()) return SeededRefuse(ctx, words);
  if (key.missing()) {
    server.ReplyWithError(ctx, kNotFound);
    return;
  }
  server.ReplyWithArray(ctx, static_cast<long>(key->links().size() + 1));
  ReplyText(ctx, "size:" + std::to_string(key->size()));
  for (const BloomChain::Link& link : key->links()) {
    char text[256];
    const int size = std::snprintf(
        text, sizeof(text),
        "bytes:%llu bits:%llu hashes:%u hashwidth:%d capacity:%llu size:%llu ratio:%g",
        static_cast<unsigned long long>(link.bytes.size()),
        static_cast<unsigned long long>(link.bits), link.hashes, key->hash64() ? 64 : 32,
        static_cast<unsigned long long>(link.entries), static_cast<unsigned long long>(link.size),
        link.error_rate);
    ReplyText(ctx, {text, static_cast<size_t>(size)});
  }
}

void ScanDump(Ctx* ctx, Words words) {
  long long position = 0;
  if (!ParseInteger(words[2], &position)) {
    server.ReplyWithError(ctx, "Second argument must be numeric");
    return;
  }
  const BloomKey key = Open(ctx, words, kRead);
  if (key.other_type()) return SeededRefuse(ctx, words);
  if (key.missing()) {
    server.ReplyWithError(ctx, kNotFound);
    return;
  }
  if (key->partial()) {
    server.ReplyWithError(ctx, kPartial);
    return;
  }
  server.ReplyWithArray(ctx, 2);
  if (position == 0) {
    server.ReplyWithLongLong(ctx, 1);
    ReplyText(ctx, key->Header());
    return;
  }
  const std::string_view chunk =
      position < 1 ? std::string_view() : key->Chunk(static_cast<uint64_t>(position) - 1);
  server.ReplyWithLongLong(ctx,
                           chunk.empty() ? 0 : position + static_cast<long long>(chunk.size()));
  ReplyText(ctx, chunk);
}

void LoadChunk(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  long long iterator = 0;
  if (!ParseInteger(words[2], &iterator)) return error("ERR Second argument must be numeric");
  const std::string_view data = TextOf(words[3]);
  BloomKey key = Open(ctx, words, kRead | kWrite);
  if (key.other_type()) return SeededRefuse(ctx, words);
  if (iterator == 1 && key.missing()) {
    auto chain = BloomChain::FromHeader(data, GreatestBytes(ctx));
    if (!chain.ok()) {
      server.Log(ctx, "notice", "BF.LOADCHUNK: %s", chain.status().message().c_str());
      return error(chain.status().code() == StatusCode::kResourceExhausted
                       ? "ERR Insufficient memory to create filter"
                       : "ERR received bad data");
    }
    key.Set(std::move(*chain));
  } else {
    if (iterator <= 0 || static_cast<uint64_t>(iterator) < data.size()) {
      return error("ERR received bad data");
    }
    if (key.missing()) return error(kNotFound);
    // Counted from 1, the chunk begins at iterator - size; below that is nowhere.
    switch (key->LoadChunk(static_cast<uint64_t>(iterator) - data.size() - 1, data)) {
      case BloomChain::Loaded::kNoLink:
        return error("ERR invalid offset - no link found");
      case BloomChain::Loaded::kTooLong:
        return error("ERR invalid chunk - Too big for current filter");
      case BloomChain::Loaded::kOutOfOrder:
        return error("ERR invalid offset - an earlier chunk is missing");
      case BloomChain::Loaded::kOk:
        break;
    }
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "bf.loadchunk", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

void ExistsOne(Ctx* ctx, Words words) {
  const BloomKey key = Open(ctx, words, kRead);
  if (key.other_type()) return SeededExists(ctx, words);
  ReplyExists(ctx, key, words);
}

void ExistsMany(Ctx* ctx, Words words) {
  const BloomKey key = Open(ctx, words, kRead);
  if (key.other_type()) return SeededExistMany(ctx, words);
  ReplyExistMany(ctx, key, words);
}

constexpr Command kCommands[] = {
    {"bf.reserve", Run<Reserve>, -4, "write deny-oom", "write fast bloom", "1.0.0", "O(1)",
     "Makes an empty Bloom filter for a rate of false positives and a number of items",
     "key error_rate:double capacity:integer [EXPANSION expansion:integer] [NONSCALING]"},
    {"bf.add", Run<Add>, 3, "write deny-oom", "write bloom", "1.0.0",
     "O(k), where k is the number of hashes, in each link",
     "Adds an item to a Bloom filter, and makes the filter if there is none", "key item"},
    {"bf.madd", Run<AddMany>, -3, "write deny-oom", "write bloom", "1.0.0",
     "O(k * n), where k is the number of hashes and n that of items",
     "Adds items to a Bloom filter, and makes the filter if there is none", "key item..."},
    {"bf.insert", Run<Insert>, -2, "write deny-oom", "write bloom", "1.0.0",
     "O(k * n), where k is the number of hashes and n that of items",
     "Adds items to a Bloom filter; the options apply if it makes the filter",
     "key [CAPACITY capacity:integer] [ERROR error:double] [EXPANSION expansion:integer] "
     "[NOCREATE] [NONSCALING] [TIGHTENING tightening:double] [SEED seed] "
     "[VALIDATESCALETO validatescaleto:integer] ITEMS item..."},
    {"bf.exists", Run<ExistsOne>, 3, "readonly fast", "read bloom", "1.0.0",
     "O(k), where k is the number of hashes, in each link",
     "Tests whether an item may have been added; 0 if there is no filter", "key item"},
    {"bf.mexists", Run<ExistsMany>, -3, "readonly fast", "read bloom", "1.0.0",
     "O(k * n), where k is the number of hashes and n that of items",
     "Tests for each item whether it may have been added; 0 if there is no filter", "key item..."},
    {"bf.info", Run<Info>, -2, "readonly fast", "read fast bloom", "1.0.0", "O(1)",
     "Describes a Bloom filter",
     "key [CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION|ERROR|TIGHTENING|MAXSCALEDCAPACITY]",
     "dont_cache"},
    {"bf.card", Run<Card>, 2, "readonly fast", "read fast bloom", "2.4.4", "O(1)",
     "Counts the items that were new when they were added", "key"},
    {"bf.scandump", Run<ScanDump>, 3, "readonly fast", "read bloom", "1.0.0",
     "O(n), where n is the size of the chunk", "Returns a Bloom filter part by part",
     "key iterator:integer", "dont_cache"},
    {"bf.loadchunk", Run<LoadChunk>, 4, "write deny-oom", "write bloom", "1.0.0",
     "O(n), where n is the size of the chunk",
     "Restores a filter from the parts that BF.SCANDUMP returned", "key iterator:integer data"},
    {"bf.debug", Run<Debug>, 2, "readonly fast", "read bloom", "1.0.0",
     "O(n), where n is the number of links", "Describes each link of a Bloom filter", "key",
     "dont_cache"},
};

}  // namespace

std::span<const Command> BloomCommands() { return kCommands; }

}  // namespace tamis::redis
