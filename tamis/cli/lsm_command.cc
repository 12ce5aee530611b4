// tamis lsm: one filter for a whole RocksDB (docs/LSM.md), seen, prepared, checked and measured on
// a database that another program has written.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "tamis/base/random.h"
#include "tamis/base/terminal_text.h"
#include "tamis/cli/command.h"
#include "tamis/cli/interrupt.h"
#include "tamis/cli/lsm_bench.h"
#include "tamis/lsm/hook_state.h"
#include "tamis/lsm/key_file.h"
#include "tamis/lsm/sst_keys.h"
#include "tamis/lsm/stored_database.h"

namespace tamis {
namespace {

using lsm::DatabaseFilter;
using lsm::StoredDatabase;
using Json = nlohmann::ordered_json;

struct Arguments {
  std::string directory;
  double fpr = 0.003;
  uint64_t random = 1'000'000;
  LsmBench bench;
  bool json = false;
};

std::atomic<bool> cancelled = false;

void Print(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string Percent(double share) { return fmt::format("{:.4g} %", 100 * share); }

std::string InText(const rocksdb::Slice& key) {
  std::string text;
  for (const char c : key.ToString()) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '\\' && c != '"';
    text += is_plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  return text;
}

Status Stopped(const std::string& what) { return Cancelled(what + " was stopped"); }

// Waits until every file is counted; kCancelled when the user has interrupted the program.
Status Count(DatabaseFilter* filter, const std::string& what) {
  while (filter->tree().IsCounting()) {
    if (cancelled) {
      filter->Stop();
      return Stopped(what);
    }
    // The interrupt comes from a signal handler, which cannot wake a thread; so it is polled.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Status::Ok();
}

// A database that no other process has open for writing, with a filter that has counted it and
// leaves no file.
struct Counted {
  StoredDatabase database;
  std::shared_ptr<DatabaseFilter> filter;
};

Result<Counted> OpenCounted(const Arguments& arguments, const std::string& doing) {
  TAMIS_ASSIGN_OR_RETURN(StoredDatabase database, StoredDatabase::Read(arguments.directory));
  TAMIS_RETURN_IF_ERROR(database.Lock());
  TAMIS_ASSIGN_OR_RETURN(auto filter, DatabaseFilter::Create({.directory = database.key_directory(),
                                                              .fpr = arguments.fpr,
                                                              .writes_files = false}));
  TAMIS_RETURN_IF_ERROR(database.Open(arguments.bench.cache_bytes, filter));
  TAMIS_RETURN_IF_ERROR(Count(filter.get(), doing));
  return Counted{std::move(database), std::move(filter)};
}

// --- inspect -----------------------------------------------------------------------------------

// Bits of an entry in a shard that is as full as the shards that were counted from key files.
Result<double> BitsOfOurs(double fpr) {
  constexpr uint64_t kKeys = 1 << 16;
  TAMIS_ASSIGN_OR_RETURN(
      const auto filter,
      BlockedQuotientFilter::Create(
          {.capacity = static_cast<uint64_t>(kKeys * 1.05), .fpr = fpr, .seed = 0}));
  return 8.0 * static_cast<double>(filter.SizeBytes()) / kKeys;
}

Json LevelsOf(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle, uint64_t* runs) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(handle, &metadata);
  Json levels = Json::array();
  for (const auto& level : metadata.levels) {
    if (level.files.empty()) continue;
    *runs += level.level == 0 ? level.files.size() : 1;
    levels.push_back(
        {{"level", level.level}, {"files", level.files.size()}, {"size_bytes", level.size}});
  }
  return levels;
}

Result<Json> FamilyAsJson(const StoredDatabase& database, const StoredDatabase::Family& family,
                          double fpr) {
  Json json{{"name", family.name},
            {"comparator", family.comparator},
            {"merge_operator", family.merge_operator},
            {"memtable", family.memtable},
            {"passes_through", lsm::BypassReasonNames(family.bypass_reasons)},
            {"opened", family.handle != nullptr}};
  if (family.handle == nullptr) return json;
  uint64_t runs = 0;
  json["levels"] = LevelsOf(database.db(), family.handle, &runs);
  json["sorted_runs"] = runs;
  rocksdb::TablePropertiesCollection files;
  const auto status = database.db()->GetPropertiesOfAllTables(family.handle, &files);
  if (!status.ok()) {
    return Unavailable("cannot read the properties of the files of column family \"" + family.name +
                       "\": " + status.ToString());
  }
  uint64_t entries = 0;
  uint64_t deletions = 0;
  uint64_t filter_bytes = 0;
  uint64_t with_filter = 0;
  uint64_t with_keys = 0;
  uint64_t key_bytes = 0;
  std::string policy;
  for (const auto& [path, properties] : files) {
    entries += properties->num_entries;
    deletions += properties->num_deletions;
    filter_bytes += properties->filter_size;
    with_filter += properties->filter_size > 0;
    if (!properties->filter_policy_name.empty()) policy = properties->filter_policy_name;
    const std::string keys =
        database.key_directory() + "/" + std::to_string(lsm::FileNumberOf(path)) + ".keys";
    const auto file = lsm::KeyFile::Open(rocksdb::FileSystem::Default().get(), keys);
    const bool fits = file.ok() && file->header().family == family.handle->GetID() &&
                      file->header().identity == lsm::IdentityOf(*properties);
    with_keys += fits;
    if (fits) key_bytes += file->size_bytes();
  }
  uint64_t in_memtables = 0;
  (void)database.db()->GetIntProperty(
      family.handle, rocksdb::DB::Properties::kNumEntriesActiveMemTable, &in_memtables);
  TAMIS_ASSIGN_OR_RETURN(const double bits, BitsOfOurs(fpr));
  const auto per_entry = [&](double bytes) {
    return entries == 0 ? 0 : 8 * bytes / static_cast<double>(entries);
  };
  json["files"] = files.size();
  json["entries"] = entries;
  json["deletions"] = deletions;
  json["entries_in_log"] = in_memtables;
  json["filter_policy"] = policy;
  json["files_with_filter"] = with_filter;
  json["filter_bits_per_entry"] = per_entry(static_cast<double>(filter_bytes));
  json["key_files"] = with_keys;
  json["key_file_bytes"] = key_bytes;
  json["our_bits_per_entry"] = bits;
  json["our_bytes"] = static_cast<uint64_t>(bits / 8 * static_cast<double>(entries));
  return json;
}

std::string LevelsInText(const Json& levels) {
  std::string text;
  for (const auto& level : levels) {
    const bool is_first = level["level"] == 0;
    text += fmt::format("{}L{}", text.empty() ? "" : ", ", level["level"].get<int>());
    if (is_first) text += fmt::format(" of {}", level["files"].get<uint64_t>());
  }
  return text.empty() ? "nothing but its log" : text;
}

void Show(const Json& json) {
  fmt::print("database  {}, {} column families{}\n",
             TerminalText(json["database"].get<std::string>()), json["families"].size(),
             json["open_in_process"].is_null()
                 ? ""
                 : fmt::format("; open in process {}: as it was a moment ago",
                               json["open_in_process"].get<int>()));
  for (const auto& family : json["families"]) {
    const auto text = [&](const char* name) {
      return TerminalText(family[name].get<std::string>());
    };
    const auto number = [&](const char* name) { return family[name].get<uint64_t>(); };
    fmt::print("family    {}\n", text("name"));
    if (family["opened"]) {
      fmt::print("  runs    {}: {}; {} files, {} entries, {} of them tombstones; {} in the log\n",
                 number("sorted_runs"), LevelsInText(family["levels"]), number("files"),
                 number("entries"), number("deletions"), number("entries_in_log"));
      fmt::print("  stock   {:.1f} bits an entry, filters in {} of {} files{}\n",
                 family["filter_bits_per_entry"].get<double>(), number("files_with_filter"),
                 number("files"),
                 text("filter_policy").empty() ? "" : " (" + text("filter_policy") + ")");
      fmt::print(
          "  ours    {:.1f} bits an entry, {:.1f} MB in all; key files of {} of {} files, {:.1f} "
          "MB\n",
          family["our_bits_per_entry"].get<double>(),
          static_cast<double>(number("our_bytes")) / 1e6, number("key_files"), number("files"),
          static_cast<double>(number("key_file_bytes")) / 1e6);
    } else {
      fmt::print("  runs    not seen: this program has no comparator \"{}\"\n", text("comparator"));
    }
    if (!family["merge_known"]) {
      fmt::print("  merges  by \"{}\", which this program does not have and does not need\n",
                 text("merge_operator"));
    }
    const std::string reasons = text("passes_through");
    fmt::print("  state   {}\n", reasons.empty() ? "the filter would answer"
                                                 : "every key would pass through: " + reasons);
  }
}

Status Inspect(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(StoredDatabase database, StoredDatabase::Read(arguments.directory));
  // Refuses a rate that no filter could have.
  TAMIS_RETURN_IF_ERROR(
      DatabaseFilter::Create(
          {.directory = database.key_directory(), .fpr = arguments.fpr, .writes_files = false})
          .status());
  TAMIS_RETURN_IF_ERROR(database.Open(arguments.bench.cache_bytes));
  const auto process = database.OpenedBy();
  Json json{{"database", database.directory()},
            {"open_in_process", process.has_value() ? Json(*process) : Json()}};
  Json& families = json["families"] = Json::array();
  for (const StoredDatabase::Family& family : database.families()) {
    if (cancelled) return Stopped("inspecting");
    TAMIS_ASSIGN_OR_RETURN(Json one, FamilyAsJson(database, family, arguments.fpr));
    one["merge_known"] = family.is_merge_known;
    families.push_back(std::move(one));
  }
  arguments.json ? Print(json) : Show(json);
  return Status::Ok();
}

// --- build, remove -----------------------------------------------------------------------------

// The families whose files could not all be read.
Status Unreadable(const StoredDatabase& database, const DatabaseFilter& filter) {
  for (const StoredDatabase::Family& family : database.families()) {
    if (family.handle == nullptr || family.bypass_reasons != 0) continue;
    const lsm::BypassReasons reasons =
        filter.tree().families().BypassReasonsOf(family.handle->GetID());
    if ((reasons & lsm::kNoMemory) != 0) {
      return {StatusCode::kResourceExhausted,
              "there is not enough memory for the keys of column "
              "family \"" +
                  family.name + "\" in \"" + database.directory() + "\""};
    }
    if ((reasons & lsm::kUnreadable) != 0) {
      return DataLoss("cannot read all files of column family \"" + family.name + "\" in \"" +
                      database.directory() +
                      "\": lookups in it would pass through; ldb checkconsistency tells more");
    }
  }
  return Status::Ok();
}

struct KeyFiles {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
KeyFiles KeyFilesIn(const std::string& directory) {
  KeyFiles files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".keys") continue;
    ++files.count;
    files.bytes += entry.file_size(error);
  }
  return files;
}

Status Build(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(StoredDatabase database, StoredDatabase::Read(arguments.directory));
  TAMIS_RETURN_IF_ERROR(database.Lock());
  TAMIS_ASSIGN_OR_RETURN(
      const auto filter,
      DatabaseFilter::Create({.directory = database.key_directory(), .fpr = arguments.fpr}));
  TAMIS_RETURN_IF_ERROR(database.Open(arguments.bench.cache_bytes, filter));
  TAMIS_RETURN_IF_ERROR(Count(filter.get(), "building; what is written can be used, so that it"));
  const lsm::TreeFilter::Figures figures = filter->tree().figures();
  const KeyFiles files = KeyFilesIn(database.key_directory());
  TAMIS_RETURN_IF_ERROR(Unreadable(database, *filter));
  if (files.count < figures.files) {
    return {StatusCode::kResourceExhausted,
            fmt::format("wrote {} of {} key files in \"{}\": the disk may be full, or the "
                        "directory not writable",
                        files.count, figures.files, database.key_directory())};
  }
  if (arguments.json) {
    Print({{"key_files", files.count},
           {"size_bytes", files.bytes},
           {"keys", figures.filter.keys},
           {"made", figures.written}});
    return Status::Ok();
  }
  fmt::print("{} key files of {} keys, {:.1f} MB; {} of them made now\n", files.count,
             figures.filter.keys, static_cast<double>(files.bytes) / 1e6, figures.written);
  return Status::Ok();
}

Status Remove(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(StoredDatabase database, StoredDatabase::Read(arguments.directory));
  TAMIS_RETURN_IF_ERROR(database.Lock());
  const std::filesystem::path keys = database.key_directory();
  uint64_t removed = 0;
  std::error_code error;
  std::filesystem::directory_iterator files(keys, error);
  const bool is_there = !error;
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    const std::string name = files->path().filename().string();
    if (!name.ends_with(".keys") && !name.ends_with(".keys.tmp")) continue;
    std::error_code failed;
    if (!std::filesystem::remove(files->path(), failed)) error = failed;
    removed += !failed;
  }
  if (is_there && error) {
    return Unavailable("cannot remove the key files in \"" + keys.string() +
                       "\": " + error.message());
  }
  // Other files in the directory are not ours and stay.
  const bool is_gone = !is_there || std::filesystem::remove(keys, error);
  if (arguments.json) {
    Print({{"removed", removed}, {"directory_removed", is_gone}});
    return Status::Ok();
  }
  fmt::print("{} key files removed\n", removed);
  if (!is_gone) {
    fmt::print("kept \"{}\", where other files lie, too\n", TerminalText(keys.string()));
  }
  return Status::Ok();
}

// --- verify ------------------------------------------------------------------------------------

struct Verified {
  uint64_t keys = 0;
  uint64_t missed = 0;
};

Result<Verified> AskEveryKey(const StoredDatabase& database, const DatabaseFilter& filter,
                             const StoredDatabase::Family& family) {
  Verified verified;
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> keys(database.db()->NewIterator(read, family.handle));
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
    if (++verified.keys % 4096 == 0 && cancelled) return Stopped("verifying");
    if (filter.MayContain(family.handle, keys->key())) continue;
    if (++verified.missed <= 5) {
      fmt::print(stderr, "missed: key \"{}\" of column family \"{}\"\n", InText(keys->key()),
                 TerminalText(family.name));
    }
  }
  if (!keys->status().ok()) {
    return Unavailable("cannot read column family \"" + family.name +
                       "\": " + keys->status().ToString());
  }
  return verified;
}

Status Verify(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(const Counted counted, OpenCounted(arguments, "verifying"));
  const auto& [database, filter] = counted;
  Json json{{"database", database.directory()}, {"families", Json::array()}};
  uint64_t missed = 0;
  bool is_sure = false;
  for (const StoredDatabase::Family& family : database.families()) {
    Json one{{"name", family.name}};
    const std::string reasons = family.handle == nullptr
                                    ? lsm::BypassReasonNames(family.bypass_reasons)
                                    : filter->BypassReasonsOf(family.handle);
    one["passes_through"] = reasons;
    if (reasons.empty()) {
      TAMIS_ASSIGN_OR_RETURN(const Verified verified, AskEveryKey(database, *filter, family));
      one["keys"] = verified.keys;
      one["missed"] = verified.missed;
      missed += verified.missed;
      // Keys of a length that hardly any database has: none is there.
      Random random(SeedFromSystem());
      uint64_t passed = 0;
      for (uint64_t i = 0; i < arguments.random; ++i) {
        if (i % 4096 == 0 && cancelled) return Stopped("verifying");
        std::string key(29, '\0');
        for (char& c : key) c = static_cast<char>(random());
        passed += filter->MayContain(family.handle, key);
      }
      const auto count = static_cast<double>(arguments.random);
      const double expected = filter->tree().figures().filter.expected_fpr;
      one["random_keys"] = arguments.random;
      one["false_positive_rate"] = count == 0 ? 0 : static_cast<double>(passed) / count;
      one["expected_rate"] = expected;
      // Without keys in files the filter is empty, and every random key is denied.
      one["deviations"] = count * expected == 0 ? 0
                                                : (static_cast<double>(passed) - count * expected) /
                                                      std::sqrt(count * expected * (1 - expected));
      is_sure = true;
    }
    json["families"].push_back(std::move(one));
  }
  json["missed"] = missed;
  json["filter_bytes"] = filter->tree().figures().filter.size_bytes;
  json["memtable_filter_bytes"] = filter->tree().figures().memtable_bytes;
  if (arguments.json) {
    Print(json);
  } else {
    for (const auto& one : json["families"]) {
      const std::string name = TerminalText(one["name"].get<std::string>());
      if (one.contains("keys")) {
        fmt::print(
            "family    {}: {} keys asked, {} missed; {} of {} random keys pass, {} by the formula "
            "for "
            "keys that each lie in one file ({:+.1f} standard deviations)\n",
            name, one["keys"].get<uint64_t>(), one["missed"].get<uint64_t>(),
            Percent(one["false_positive_rate"].get<double>()), one["random_keys"].get<uint64_t>(),
            Percent(one["expected_rate"].get<double>()), one["deviations"].get<double>());
      } else {
        fmt::print("family    {}: passes through: {}\n", name,
                   one["passes_through"].get<std::string>());
      }
    }
    if (json["memtable_filter_bytes"] > 0) {
      fmt::print("          what the log holds has filters of its own, whose rate adds to it\n");
    }
  }
  if (missed > 0) {
    return DataLoss(
        fmt::format("{} keys that are in \"{}\" were denied: do not use a filter on "
                    "it, and remove its key files with tamis lsm remove",
                    missed, database.directory()));
  }
  if (!is_sure) fmt::print(stderr, "tamis: nothing was verified: every family passes through\n");
  return Status::Ok();
}

Status Bench(const Arguments& arguments) {
  TAMIS_ASSIGN_OR_RETURN(Counted counted, OpenCounted(arguments, "measuring"));
  TAMIS_ASSIGN_OR_RETURN(const LsmBench::Report report,
                         arguments.bench.Run(counted.database, &cancelled));
  arguments.json ? Print(Json::parse(report.AsJson())) : (void)fmt::print("{}", report.AsText());
  return Status::Ok();
}

}  // namespace

void AddLsmCommand(Command app, Invocation* invocation) {
  Command lsm =
      app.AddCommand("lsm", "One filter for a whole RocksDB: look, prepare, check, measure");
  lsm.RequireCommand();
  auto arguments = std::make_shared<Arguments>();
  Arguments* const a = arguments.get();
  const auto add = [&](const char* name, const char* help, auto run) {
    Command sub = lsm.AddCommand(name, help);
    sub.AddOption("DIR", a->directory, "The directory of the database").Required();
    sub.AddFlag("--json", a->json, "Print JSON");
    sub.OnParsed([=] {
      invocation->run = [arguments, run] {
        const InterruptScope scope(&cancelled);
        return Report(run(*arguments));
      };
    });
    return sub;
  };
  const auto rate = [&](Command sub) {
    sub.AddOption("--fpr", a->fpr, "The filter's false-positive rate").ShowDefault();
    return sub;
  };
  rate(add("inspect", "Print families, sorted runs, and what a filter would cost and do", Inspect));
  add("build", "Write the key files of a closed database, so that its next opening is fast", Build);
  add("remove", "Remove the key files", Remove);
  rate(add("verify", "Ask for every key; exit status 1 when one was denied", Verify))
      .AddOption("--random", a->random, "How many random keys to ask for, too")
      .ShowDefault();
  Command bench =
      rate(add("bench", "Measure lookups with and without the filter, in one run", Bench));
  bench.AddOption("--keys", a->bench.keys_file, "A file of the keys to look up, one a line");
  bench.AddOption("--family", a->bench.family, "The column family").ShowDefault();
  bench.AddOption("--lookups", a->bench.lookups, "Lookups of each kind in a round").ShowDefault();
  bench.AddOption("--rounds", a->bench.rounds, "Rounds; the median is reported").ShowDefault();
  bench.AddOption("--cache-bytes", a->bench.cache_bytes, "RocksDB's block cache")
      .AsSizeBytes()
      .ShowDefault();
}

}  // namespace tamis
