#include "tamis/redis/cuckoo_commands.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tamis/redis/chain_commands.h"
#include "tamis/redis/cuckoo_chain.h"
#include "tamis/redis/option_words.h"

namespace tamis::redis {
namespace {

using CuckooKey = FilterKey<CuckooChain>;
using Inserted = CuckooChain::Inserted;

// The slots that one CF.COMPACT passes: ten to twenty milliseconds where each tag costs a memory
// access.
constexpr uint64_t kCompactedSlots = uint64_t{16} << 20;

constexpr long long kGreatestCapacity = 1ll << 30;  // that clients may ask for
constexpr long long kAnyCapacity = 1ll << 61;       // that there can be

CuckooKey Open(Ctx* ctx, Words words, int mode) { return {ctx, words[1], mode}; }

CuckooChain::Options DefaultOptions() {
  return {.capacity = static_cast<uint64_t>(settings.cf_initial_size),
          .bucket_size = static_cast<uint16_t>(settings.cf_bucket_size),
          .max_iterations = static_cast<uint16_t>(settings.cf_max_iterations),
          .expansion = static_cast<uint16_t>(settings.cf_expansion_factor)};
}

CuckooChain::Limits LimitsFor(Ctx* ctx) {
  return {.tables = LimitsApply(ctx) ? static_cast<uint64_t>(settings.cf_max_expansions)
                                     : CuckooChain::kGreatestTables,
          .bytes = GreatestBytes(ctx)};
}

// Other servers have other limits, and what they have made is made here.
long long GreatestCapacity(Ctx* ctx) { return LimitsApply(ctx) ? kGreatestCapacity : kAnyCapacity; }

// nullptr, or the error.
const char* Create(Ctx* ctx, CuckooKey& key, const CuckooChain::Options& options) {
  if (CuckooChain::FirstTableBytes(options) > GreatestBytes(ctx)) {
    return "ERR Could not create filter: greater than tamis-max-bytes";
  }
  auto chain = CuckooChain::Create(options);
  if (!chain.ok()) {
    ItemLost(ctx, key);
    return "ERR Insufficient memory to create filter";
  }
  key.Set(std::move(*chain));
  return nullptr;
}

// With all that depends on settings, so that a replica of others makes the same filter.
void ReplicateCreation(Ctx* ctx, String* key, const CuckooChain::Options& options) {
  server.Replicate(ctx, "CF.RESERVE", "slclclcl", key, static_cast<long long>(options.capacity),
                   "BUCKETSIZE", static_cast<long long>(options.bucket_size), "MAXITERATIONS",
                   static_cast<long long>(options.max_iterations), "EXPANSION",
                   static_cast<long long>(options.expansion));
  Notify(ctx, "cf.reserve", key);
}

// False, and the error is sent, when the words are not right.
bool ReadReserve(Ctx* ctx, Words words, CuckooChain::Options* chosen) {
  const auto error = [&](const char* text) {
    server.ReplyWithError(ctx, text);
    return false;
  };
  if (words.size() % 2 == 0) {
    server.WrongArity(ctx);
    return false;
  }
  long long capacity = 0;
  if (!ParseInteger(words[2], &capacity)) return error("Bad capacity");
  std::optional<long long> iterations;
  std::optional<long long> bucket;
  std::optional<long long> expansion;
  const Option known[] = {
      {"MAXITERATIONS", &iterations, "Couldn't parse MAXITERATIONS",
       "MAXITERATIONS: value must be in the range [1, 65535]", 1, 65535},
      {"BUCKETSIZE", &bucket, "Couldn't parse BUCKETSIZE",
       "BUCKETSIZE: value must be in the range [1, 255]", 1, 255},
      {"EXPANSION", &expansion, "Couldn't parse EXPANSION",
       "EXPANSION: value must be in the range [0, 32768]", 0, 32768},
  };
  const OtherWords others = LimitsApply(ctx) ? OtherWords::kRefused : OtherWords::kIgnored;
  if (!ReadOptions(ctx, words, 3, known, {}, others)) return false;
  const long long bucket_size = bucket.value_or(settings.cf_bucket_size);
  if (capacity < bucket_size * 2 || capacity > GreatestCapacity(ctx)) {
    return error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]");
  }
  *chosen = {
      .capacity = static_cast<uint64_t>(capacity),
      .bucket_size = static_cast<uint16_t>(bucket_size),
      .max_iterations = static_cast<uint16_t>(iterations.value_or(settings.cf_max_iterations)),
      .expansion = static_cast<uint16_t>(expansion.value_or(settings.cf_expansion_factor))};
  return true;
}

void Reserve(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  CuckooChain::Options chosen;
  if (!ReadReserve(ctx, words, &chosen)) return CommandRefused(ctx, false);
  CuckooKey key = Open(ctx, words, kRead | kWrite);
  if (!key.missing()) return error(key.other_type() ? kWrongType : "ERR item exists");
  if (const char* wrong = Create(ctx, key, chosen)) return error(wrong);
  ReplicateCreation(ctx, words[1], chosen);
  server.ReplyWithSimpleString(ctx, "OK");
}

// False, and the error is sent, when there is no filter that takes items and none is made.
bool OpenToInsert(Ctx* ctx, String* name, CuckooKey& key, const CuckooChain::Options& options,
                  bool create) {
  const bool opened = OpenForItems(ctx, key, create, [&](CuckooKey& missing) {
    const char* wrong = Create(ctx, missing, options);
    if (wrong == nullptr) ReplicateCreation(ctx, name, options);
    return wrong;
  });
  if (opened && key->partial()) server.ReplyWithError(ctx, kPartial);
  return opened && !key->partial();
}

void AddOne(Ctx* ctx, Words words, bool only_new) {
  CuckooKey key = Open(ctx, words, kRead | kWrite);
  if (!OpenToInsert(ctx, words[1], key, DefaultOptions(), true)) return;
  const std::string_view item = TextOf(words[2]);
  const CuckooChain::Limits limits = LimitsFor(ctx);
  const Inserted done = only_new ? key->InsertNew(item, limits) : key->Insert(item, limits);
  if (done == Inserted::kNoMemory) ItemLost(ctx, key);
  switch (done) {
    case Inserted::kYes:
      server.ReplicateVerbatim(ctx);
      Notify(ctx, "cf.add", words[1]);
      server.ReplyWithBool(ctx, 1);
      break;
    case Inserted::kThere:
      server.ReplyWithBool(ctx, 0);
      break;
    case Inserted::kFull:
      server.ReplyWithError(ctx, "Filter is full");
      break;
    case Inserted::kTooManyTables:
      server.ReplyWithError(ctx, "Maximum expansions reached");
      break;
    case Inserted::kTooLarge:
      server.ReplyWithError(ctx, "ERR the filter would be greater than tamis-max-bytes");
      break;
    default:
      server.ReplyWithError(ctx, kNoMemory);
  }
}

void Add(Ctx* ctx, Words words) { AddOne(ctx, words, false); }
void AddNew(Ctx* ctx, Words words) { AddOne(ctx, words, true); }

struct Insertion {
  CuckooChain::Options options = DefaultOptions();
  bool create = true;
  bool only_new = false;
};

// Replies with as many as there are items: -1 = it could not be added.
void InsertItems(Ctx* ctx, Words words, Words items, const Insertion& insertion) {
  CuckooKey key = Open(ctx, words, kRead | kWrite);
  std::vector<String*> inserted;  // items that a replica has to insert
  if (!MakeRoom(ctx, key, items.size(), &inserted)) return;
  if (!OpenToInsert(ctx, words[1], key, insertion.options, insertion.create)) return;
  const CuckooChain::Limits limits = LimitsFor(ctx);
  const bool as_bool = !insertion.only_new && Resp3(ctx);
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t begin) {
    Inserted results[kGroup];
    key->Insert(texts, insertion.only_new, limits, results);
    for (size_t i = 0; i < texts.size(); ++i) {
      const bool yes = results[i] == Inserted::kYes;
      if (yes) inserted.push_back(items[begin + i]);
      if (results[i] == Inserted::kNoMemory) ItemLost(ctx, key);
      if (as_bool) {
        server.ReplyWithBool(ctx, yes);
      } else {
        server.ReplyWithLongLong(ctx, yes ? 1 : results[i] == Inserted::kThere ? 0 : -1);
      }
    }
  });
  if (inserted.empty()) return;
  server.Replicate(ctx, "CF.INSERT", "sccv", words[1], "NOCREATE", "ITEMS", inserted.data(),
                   inserted.size());
  Notify(ctx, "cf.add", words[1]);
}

void InsertMany(Ctx* ctx, Words words, bool only_new) {
  Insertion insertion{.only_new = only_new};
  bool no_create = false;
  std::optional<long long> capacity;
  const Option known[] = {
      {"NOCREATE", &no_create},
      {"CAPACITY", &capacity, "Bad capacity",
       "Capacity must be in the range [cf-bucket-size * 2, 1073741824]",
       settings.cf_bucket_size * 2, GreatestCapacity(ctx)},
  };
  const std::optional<size_t> end = ReadOptions(ctx, words, 2, known, "ITEMS");
  if (!end) return CommandRefused(ctx, true);
  if (*end + 1 >= words.size()) {
    server.WrongArity(ctx);
    return;
  }
  insertion.create = !no_create;
  if (capacity) insertion.options.capacity = static_cast<uint64_t>(*capacity);
  InsertItems(ctx, words, words.subspan(*end + 1), insertion);
}

void Insert(Ctx* ctx, Words words) { InsertMany(ctx, words, false); }
void InsertNew(Ctx* ctx, Words words) { InsertMany(ctx, words, true); }

void Erase(Ctx* ctx, Words words) {
  CuckooKey key = Open(ctx, words, kRead | kWrite);
  if (key.get() == nullptr || key->partial()) {
    server.ReplyWithError(ctx, key.get() == nullptr ? "Not found" : kPartial);
    return;
  }
  const bool erased = key->Erase(TextOf(words[2]));
  if (erased) {
    server.ReplicateVerbatim(ctx);
    Notify(ctx, "cf.del", words[1]);
  }
  server.ReplyWithBool(ctx, erased);
}

void Count(Ctx* ctx, Words words) {
  const CuckooKey key = Open(ctx, words, kRead);
  if (!Answers(ctx, key)) return;
  if (key.get() != nullptr && key->partial()) {
    server.ReplyWithError(ctx, kPartial);
    return;
  }
  server.ReplyWithLongLong(
      ctx, key.get() == nullptr ? 0 : static_cast<long long>(key->Count(TextOf(words[2]))));
}

void Info(Ctx* ctx, Words words) {
  const CuckooKey key = Open(ctx, words, kRead);
  if (key.get() == nullptr) {
    server.ReplyWithError(ctx, kNotFound);
    return;
  }
  const std::pair<const char*, uint64_t> fields[] = {{"Size", key->SizeBytes()},
                                                     {"Number of buckets", key->buckets()},
                                                     {"Number of filters", key->tables().size()},
                                                     {"Number of items inserted", key->items()},
                                                     {"Number of items deleted", key->deletes()},
                                                     {"Bucket size", key->bucket_size()},
                                                     {"Expansion rate", key->expansion()},
                                                     {"Max iterations", key->max_iterations()}};
  server.ReplyWithMap(ctx, std::size(fields));
  for (const auto& [name, value] : fields) {
    server.ReplyWithSimpleString(ctx, name);
    server.ReplyWithLongLong(ctx, static_cast<long long>(value));
  }
}

void Debug(Ctx* ctx, Words words) {
  const CuckooKey key = Open(ctx, words, kRead);
  if (key.get() == nullptr) {
    server.ReplyWithError(ctx, kNotFound);
    return;
  }
  char text[256];
  const int size = std::snprintf(
      text, sizeof(text),
      "bktsize:%u buckets:%llu items:%llu deletes:%llu filters:%zu max_iterations:%u expansion:%u",
      key->bucket_size(), static_cast<unsigned long long>(key->buckets()),
      static_cast<unsigned long long>(key->items()),
      static_cast<unsigned long long>(key->deletes()), key->tables().size(), key->max_iterations(),
      key->expansion());
  ReplyText(ctx, {text, static_cast<size_t>(size)});
}

void Free(std::vector<ByteArray> tables) {
  size_t bytes = 0;
  for (const ByteArray& table : tables) bytes += table.size();
  FreeLater(std::move(tables), bytes);
}

void Compact(Ctx* ctx, Words words) {
  if (words.size() > 3) {
    server.WrongArity(ctx);
    return;
  }
  std::optional<long long> position;
  if (words.size() == 3 && (!ParseInteger(words[2], &position.emplace()) || *position < 0)) {
    server.ReplyWithError(ctx, "Invalid position");
    return;
  }
  CuckooKey key = Open(ctx, words, kRead | kWrite);
  if (key.get() == nullptr || key->partial()) {
    server.ReplyWithError(ctx, key.get() == nullptr ? "Cuckoo filter was not found" : kPartial);
    return;
  }
  const uint64_t begin = position ? static_cast<uint64_t>(*position) : key->next_piece();
  if (begin != 0 && begin < key->tables()[0].size()) {
    server.ReplyWithError(ctx, "Invalid position");
    return;
  }
  std::vector<ByteArray> dropped;
  dropped.reserve(key->tables().size());
  const CompactedPiece piece = key->Compact(begin, kCompactedSlots, true, &dropped);
  Free(std::move(dropped));
  if (piece.changed) {
    // A replica was copied, or this server's log is read again, when a compaction was half done.
    if (faults.compacts_as_it_stands) {
      server.ReplicateVerbatim(ctx);
    } else {
      server.Replicate(ctx, "CF.COMPACT", "sl", words[1], static_cast<long long>(begin));
    }
    Notify(ctx, "cf.compact", words[1]);
  }
  if (position) {
    server.ReplyWithLongLong(ctx, static_cast<long long>(piece.next));
  } else {
    server.ReplyWithSimpleString(ctx, "OK");
  }
}

void ScanDump(Ctx* ctx, Words words) {
  long long position = 0;
  if (!ParseInteger(words[2], &position) || position < 0) {
    server.ReplyWithError(ctx, "Invalid position");
    return;
  }
  const CuckooKey key = Open(ctx, words, kRead);
  if (key.get() == nullptr || key->partial()) {
    server.ReplyWithError(ctx, key.get() == nullptr ? kNotFound : kPartial);
    return;
  }
  server.ReplyWithArray(ctx, 2);
  if (position == 0 && key->items() != 0) {
    server.ReplyWithLongLong(ctx, 1);
    ReplyText(ctx, key->Header());
    return;
  }
  const std::string_view chunk = key->items() == 0 || position == 0
                                     ? std::string_view()
                                     : key->Chunk(static_cast<uint64_t>(position) - 1);
  if (chunk.empty()) {
    server.ReplyWithLongLong(ctx, 0);
    server.ReplyWithNull(ctx);
    return;
  }
  server.ReplyWithLongLong(ctx, position + static_cast<long long>(chunk.size()));
  ReplyText(ctx, chunk);
}

void LoadChunk(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  long long position = 0;
  if (!ParseInteger(words[2], &position) || position == 0) return error("Invalid position");
  const std::string_view data = TextOf(words[3]);
  CuckooKey key = Open(ctx, words, kRead | kWrite);
  if (key.other_type()) return error(kWrongType);
  if (position == 1) {
    if (!key.missing()) return error("ERR item exists");
    if (data.size() != CuckooChain::kHeaderSize) return error("Invalid header");
    auto chain = CuckooChain::FromHeader(data, GreatestBytes(ctx));
    if (!chain.ok()) {
      server.Log(ctx, "notice", "CF.LOADCHUNK: %s", chain.status().message().c_str());
      return error("Couldn't create filter!");
    }
    key.Set(std::move(*chain));
  } else {
    if (key.missing()) return error(kNotFound);
    const auto end = static_cast<uint64_t>(position);
    if (position < 0 || end <= data.size() || !key->LoadChunk(end - data.size() - 1, data)) {
      return error("Couldn't load chunk!");
    }
  }
  server.ReplicateVerbatim(ctx);
  Notify(ctx, "cf.loadchunk", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

constexpr char kPerTable[] = "O(n), where n is the number of tables";
constexpr char kPerInsert[] =
    "O(n + i), where n is the number of tables and i that of iterations, for each item";

constexpr Command kCommands[] = {
    {"cf.reserve", Run<Reserve>, -3, "write deny-oom", "write fast cuckoo", "1.0.0", "O(1)",
     "Makes an empty cuckoo filter for a number of items",
     "key capacity:integer [BUCKETSIZE bucketsize:integer] [MAXITERATIONS maxiterations:integer] "
     "[EXPANSION expansion:integer]"},
    {"cf.add", Run<Add>, 3, "write deny-oom", "write cuckoo", "1.0.0", kPerInsert,
     "Adds a copy of an item to a cuckoo filter, and makes the filter if there is none",
     "key item"},
    {"cf.addnx", Run<AddNew>, 3, "write deny-oom", "write cuckoo", "1.0.0", kPerInsert,
     "Adds an item unless it may be there, and makes the cuckoo filter if there is none",
     "key item"},
    {"cf.insert", Run<Insert>, -4, "write deny-oom", "write cuckoo", "1.0.0", kPerInsert,
     "Adds a copy of each item; the options apply if it makes the filter",
     "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item..."},
    {"cf.insertnx", Run<InsertNew>, -4, "write deny-oom", "write cuckoo", "1.0.0", kPerInsert,
     "Adds each item unless it may be there; the options apply if it makes the filter",
     "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item..."},
    {"cf.exists", Run<Exists<CuckooChain>>, 3, "readonly fast", "read cuckoo", "1.0.0", kPerTable,
     "Tests whether an item may be in a cuckoo filter; 0 if there is no filter", "key item"},
    {"cf.mexists", Run<ExistMany<CuckooChain>>, -3, "readonly fast", "read cuckoo", "1.0.0",
     "O(n * m), where n is the number of tables and m that of items",
     "Tests for each item whether it may be in a cuckoo filter; 0 if there is no filter",
     "key item..."},
    {"cf.del", Run<Erase>, 3, "write fast", "write cuckoo", "1.0.0", kPerTable,
     "Erases one copy of an item, which must have been added, or another item is lost", "key item"},
    {"cf.count", Run<Count>, 3, "readonly fast", "read cuckoo", "1.0.0", kPerTable,
     "Returns an upper bound on the copies of an item", "key item"},
    {"cf.info", Run<Info>, 2, "readonly fast", "read fast cuckoo", "1.0.0", "O(1)",
     "Describes a cuckoo filter", "key", "dont_cache"},
    {"cf.scandump", Run<ScanDump>, 3, "readonly fast", "read cuckoo", "1.0.0",
     "O(n), where n is the size of the chunk", "Returns a cuckoo filter part by part",
     "key iterator:integer", "dont_cache"},
    {"cf.loadchunk", Run<LoadChunk>, 4, "write deny-oom", "write cuckoo", "1.0.0",
     "O(n), where n is the size of the chunk",
     "Restores a filter from the parts that CF.SCANDUMP returned", "key iterator:integer data"},
    {"cf.compact", Run<Compact>, -2, "write", "write cuckoo", "1.0.0",
     "O(1): it passes 16 MiB of the filter, or less where they hold many items",
     "Moves items of newer tables into free places of older ones, one piece of a large filter at a "
     "time",
     "key [position:integer]"},
    {"cf.debug", Run<Debug>, 2, "readonly fast", "read cuckoo", "1.0.0", "O(1)",
     "Describes how a cuckoo filter was made and how full it is", "key", "dont_cache"},
};

}  // namespace

std::span<const Command> CuckooCommands() { return kCommands; }

}  // namespace tamis::redis
