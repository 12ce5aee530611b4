#include "tamis/cli/lsm_bench.h"

#include <fmt/format.h>
#include <rocksdb/perf_context.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tamis/base/random.h"
#include "tamis/base/terminal_text.h"
#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/tree_filter.h"

namespace tamis {
namespace {

using rocksdb::Slice;

constexpr size_t kBatch = 32;

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double MedianOf(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

// Keys to look up, of one kind.
struct Lookups {
  std::string what;
  std::vector<std::string> keys;
};

// Where lookups go, and what they find there.
class Subject {
 public:
  Subject(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) : db_(db), family_(family) {}

  // Each waits for the answer of the one before it.
  uint64_t OneByOne(const Lookups& lookups) {
    uint64_t found = 0;
    for (size_t i = 0; i < lookups.keys.size(); ++i) {
      rocksdb::PinnableSlice value;
      // Has no effect but to make the address depend on the result before.
      const size_t at = i + (found > lookups.keys.size() ? 1 : 0);
      found += db_->Get(read_, family_, lookups.keys[at], &value).ok();
    }
    return found;
  }
  uint64_t Batches(const Lookups& lookups) {
    uint64_t found = 0;
    std::vector<Slice> keys(lookups.keys.begin(), lookups.keys.end());
    for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
      const size_t size = std::min(kBatch, keys.size() - begin);
      rocksdb::PinnableSlice values[kBatch];
      rocksdb::Status statuses[kBatch];
      db_->MultiGet(read_, family_, size, &keys[begin], values, statuses);
      for (size_t i = 0; i < size; ++i) found += statuses[i].ok();
    }
    return found;
  }
  double BlocksOf(const Lookups& lookups) {
    rocksdb::SetPerfLevel(rocksdb::kEnableCount);
    rocksdb::get_perf_context()->Reset();
    OneByOne(lookups);
    const auto* const counts = rocksdb::get_perf_context();
    const uint64_t blocks = counts->block_cache_hit_count + counts->block_read_count;
    rocksdb::SetPerfLevel(rocksdb::kDisable);
    return static_cast<double>(blocks) / static_cast<double>(lookups.keys.size());
  }

 private:
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const family_;
  const rocksdb::ReadOptions read_;
};

Result<Lookups> ReadKeys(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Lookups lookups{.what = "keys of the file"};
  for (std::string line; std::getline(file, line);) lookups.keys.push_back(line);
  if (!file.eof()) return NotFound("cannot read the keys to look up from \"" + path + "\"");
  if (lookups.keys.empty()) {
    return InvalidArgument("cannot measure: file \"" + path + "\" holds no keys, one a line");
  }
  return lookups;
}

// Some that are there, each as likely as another.
Result<Lookups> SampleKeys(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, uint64_t count,
                           Random* random, const std::atomic<bool>* cancelled) {
  Lookups lookups{.what = "keys that are there"};
  rocksdb::ReadOptions read;
  read.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> keys(db->NewIterator(read, family));
  uint64_t seen = 0;
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
    if (++seen % 4096 == 0 && *cancelled) return Cancelled("measuring was stopped");
    if (lookups.keys.size() < count) {
      lookups.keys.push_back(keys->key().ToString());
    } else if (const uint64_t place = random->Uniform(seen); place < count) {
      lookups.keys[place] = keys->key().ToString();
    }
  }
  if (!keys->status().ok()) {
    return Unavailable("cannot read the keys to look up: " + keys->status().ToString());
  }
  for (size_t i = lookups.keys.size(); i > 1; --i) {
    std::swap(lookups.keys[i - 1], lookups.keys[random->Uniform(i)]);
  }
  return lookups;
}

// A key of the form of those that are there: its last bytes are those of others at these places.
// Random bytes would lie outside of the range of most keys, where RocksDB answers without reading.
// Keys whose last digits are text may still come to lie outside: then see NeighbourOf.
std::string MixedKey(const Lookups& present, std::string key, Random* random) {
  constexpr size_t kMixed = 8;
  for (size_t i = key.size() - std::min(key.size(), kMixed); i < key.size(); ++i) {
    const std::string& other = present.keys[random->Uniform(present.keys.size())];
    if (i < other.size()) key[i] = other[i];
  }
  return key;
}

// Keys next to one that is there, the likelier ones first: the last one lies right after it, so in
// its block of every file whose range it is in.
std::string NeighbourOf(const std::string& key, int attempt) {
  if (key.empty() || attempt >= 2) return key + '\0';
  std::string neighbour = key;
  neighbour.back() = static_cast<char>(neighbour.back() + (attempt == 0 ? 1 : -1));
  return neighbour;
}

// Keys that are absent, one made from each present one: make(key, attempt), up to `attempts` times.
template <class Make>
Lookups AbsentKeys(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, const Lookups& present,
                   std::string what, int attempts, Make&& make) {
  Lookups lookups{.what = std::move(what)};
  for (const std::string& one : present.keys) {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      std::string key = make(one, attempt);
      std::string value;
      if (!db->Get({}, family, key, &value).IsNotFound()) continue;
      lookups.keys.push_back(std::move(key));
      break;
    }
  }
  return lookups;
}

}  // namespace

Result<LsmBench::Report> LsmBench::Run(const lsm::StoredDatabase& database,
                                       std::atomic<bool>* cancelled) const {
  const auto at = std::ranges::find_if(
      database.families(), [&](const auto& one) { return one.name == family && one.handle; });
  if (at == database.families().end()) {
    return NotFound("cannot measure: \"" + database.directory() + "\" has no column family \"" +
                    family + "\" that can be opened; tamis lsm inspect lists them");
  }
  if (rounds == 0 || lookups == 0) return InvalidArgument("cannot measure nothing");
  rocksdb::ColumnFamilyHandle* const handle = at->handle;
  if (const std::string reasons = database.filtered()->filter().BypassReasonsOf(handle);
      !reasons.empty()) {
    return FailedPrecondition("cannot measure: column family \"" + family +
                              "\" would pass through: " + reasons);
  }
  Random random(1);
  std::vector<Lookups> kinds;
  if (!keys_file.empty()) {
    TAMIS_ASSIGN_OR_RETURN(Lookups read, ReadKeys(keys_file));
    kinds.push_back(std::move(read));
  } else {
    TAMIS_ASSIGN_OR_RETURN(Lookups present,
                           SampleKeys(database.db(), handle, lookups, &random, cancelled));
    if (present.keys.empty()) {
      return FailedPrecondition("cannot measure: column family \"" + family + "\" holds no keys");
    }
    Lookups mixed =
        AbsentKeys(database.db(), handle, present, "keys that are not", 16,
                   [&](const std::string& key, int) { return MixedKey(present, key, &random); });
    Lookups neighbours =
        AbsentKeys(database.db(), handle, present, "neighbours that are not", 3, NeighbourOf);
    for (Lookups* absent : {&mixed, &neighbours}) {
      if (!absent->keys.empty()) kinds.push_back(std::move(*absent));
    }
    kinds.push_back(std::move(present));
  }

  Report report{.database = database.directory(), .family = family};
  rocksdb::ColumnFamilyMetaData metadata;
  database.db()->GetColumnFamilyMetaData(handle, &metadata);
  for (const auto& level : metadata.levels) {
    report.sorted_runs += level.level == 0 ? level.files.size() : !level.files.empty();
  }
  rocksdb::TablePropertiesCollection files;
  if (const auto status = database.db()->GetPropertiesOfAllTables(handle, &files); !status.ok()) {
    return Unavailable("cannot read the files of \"" + database.directory() +
                       "\": " + status.ToString());
  }
  for (const auto& [path, properties] : files) report.entries += properties->num_entries;
  report.filter_bytes = database.filtered()->filter().tree().figures().filter.size_bytes;

  Subject stock(database.db(), handle);
  Subject filtered(database.filtered(), handle);
  static constexpr std::pair<const char*, uint64_t (Subject::*)(const Lookups&)> kWays[] = {
      {"Get", &Subject::OneByOne}, {"MultiGet of 32", &Subject::Batches}};
  for (const Lookups& kind : kinds) {
    // The cache is warm from here on.
    const uint64_t found = stock.OneByOne(kind);
    report.blocks.push_back(
        {kind.what, kind.keys.size(), found, stock.BlocksOf(kind), filtered.BlocksOf(kind)});
    for (const auto& [name, way] : kWays) {
      std::vector<double> times[2];
      std::vector<double> ratios;
      for (uint64_t round = 0; round < rounds; ++round) {
        if (*cancelled) return Cancelled("measuring was stopped");
        double took[2];
        for (const int turn : {0, 1}) {
          const int which = static_cast<int>((round + static_cast<uint64_t>(turn)) % 2);
          Subject& subject = which == 0 ? stock : filtered;
          const double begin = ProcessorSeconds();
          const uint64_t now = (subject.*way)(kind);
          took[which] = ProcessorSeconds() - begin;
          if (now != found) {
            return Internal(fmt::format("of {} {} {} finds {}, the database itself {}",
                                        kind.keys.size(), kind.what, name, now, found));
          }
          times[which].push_back(1e9 * took[which] / static_cast<double>(kind.keys.size()));
        }
        ratios.push_back(took[0] / took[1]);
      }
      const auto [least, greatest] = std::ranges::minmax(ratios);
      report.lines.push_back({fmt::format("{}, {}", kind.what, name), MedianOf(times[0]),
                              MedianOf(times[1]), MedianOf(ratios), least, greatest});
    }
  }
  return report;
}

std::string LsmBench::Report::AsText() const {
  std::string text = fmt::format(
      "database  {}, column family {}: {} entries in {} sorted runs; filter {:.1f} MB\n\n"
      "{:<36} {:>10} {:>10}   {}\n",
      TerminalText(database), TerminalText(family), entries, sorted_runs,
      static_cast<double>(filter_bytes) / 1e6, "nanoseconds of processor time", "stock", "filtered",
      "stock : filtered");
  for (const Line& line : lines) {
    text += fmt::format("{:<36} {:>10.0f} {:>10.0f}   {:.2f} [{:.2f}..{:.2f}]\n", line.what,
                        line.stock_ns, line.filtered_ns, line.ratio, line.least, line.greatest);
  }
  text += fmt::format("\n{:<36} {:>10} {:>10}   {}\n", "blocks touched by one", "stock", "filtered",
                      "found");
  for (const Blocks& one : blocks) {
    text += fmt::format("{:<36} {:>10.4f} {:>10.4f}   {} of {}\n", one.what, one.stock,
                        one.filtered, one.found, one.lookups);
  }
  return text;
}

std::string LsmBench::Report::AsJson() const {
  nlohmann::ordered_json json{{"database", database},
                              {"family", family},
                              {"entries", entries},
                              {"sorted_runs", sorted_runs},
                              {"filter_bytes", filter_bytes},
                              {"times", nlohmann::ordered_json::array()},
                              {"blocks", nlohmann::ordered_json::array()}};
  for (const Line& line : lines) {
    json["times"].push_back({{"what", line.what},
                             {"stock_ns", line.stock_ns},
                             {"filtered_ns", line.filtered_ns},
                             {"ratio", line.ratio},
                             {"least", line.least},
                             {"greatest", line.greatest}});
  }
  for (const Blocks& one : blocks) {
    json["blocks"].push_back({{"what", one.what},
                              {"lookups", one.lookups},
                              {"found", one.found},
                              {"stock", one.stock},
                              {"filtered", one.filtered}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tamis
