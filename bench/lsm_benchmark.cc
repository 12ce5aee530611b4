// One filter for a whole RocksDB against RocksDB's own filters, one a file: lookups, writes,
// memory, counting anew.
//
//   lsm_benchmark [--keys 10000000] [--rounds 5] [--runs N] [--directory DIR]
//   [reads|seeks|writes|filter]
//
// Built twice: over Debian's library, which has assertions, and over a release build, whose strings
// have an older ABI and which has no type information (bench/lsm). So nothing here, and nothing of
// what it is linked with, may need either.
//
// Times are processor time, of all kinds by turns within one run; a ratio is the median of those of
// the rounds, with the least and the greatest.
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/figures.h"
#include "tamis/base/hash.h"
#include "tamis/lsm/filtered_db.h"
#include "tamis/lsm/tree_filter.h"

namespace tamis {
namespace {

using rocksdb::Slice;

constexpr uint64_t kInMemtable = 50'000;
constexpr uint64_t kLookups = 40'000;  // a round
constexpr size_t kBatch = 32;
constexpr uint64_t kAbsent = uint64_t{1} << 40;

struct Arguments {
  uint64_t keys = 10'000'000;
  uint64_t rounds = 5;
  int runs = 0;  // lookups only with so many sorted runs
  std::string directory;
};

void Check(const rocksdb::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "lsm_benchmark: cannot %s: %s\n", what, status.ToString().c_str());
  std::exit(1);
}
[[noreturn]] void Wrong(const std::string& what) {
  std::fprintf(stderr, "lsm_benchmark: WRONG: %s\n", what.c_str());
  std::exit(1);
}

double Seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
double OfThread() { return Seconds(CLOCK_THREAD_CPUTIME_ID); }
double OfProcess() { return Seconds(CLOCK_PROCESS_CPUTIME_ID); }

struct Ratio {
  double median, least, greatest;
};
// Round by round.
Ratio RatioOf(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> ratios;
  for (size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i] / below[i]);
  return {Median(ratios), *std::ranges::min_element(ratios), *std::ranges::max_element(ratios)};
}

// Key number i: 16 bytes, anywhere in their order.
class Key {
 public:
  explicit Key(uint64_t i) : words_{__builtin_bswap64(Mix(i)), Mix(i ^ 0xabcdef)} {}
  operator Slice() const { return {reinterpret_cast<const char*>(words_), sizeof words_}; }
  bool operator<(const Key& other) const { return std::memcmp(words_, other.words_, 16) < 0; }

 private:
  uint64_t words_[2];
};

const std::string kValue(20, 'v');

// --- reads -------------------------------------------------------------------------------------

struct Shape {
  const char* name;
  int bloom_bits;
  bool last_without;  // the last level has no filters
  bool cached;        // filters and indexes lie in the block cache
  bool filtered;      // ours before it
};
constexpr Shape kShapes[] = {
    {"Bloom 10", 10, false, false, false},
    {"Bloom 13", 13, false, false, false},
    {"Bloom 10, metadata in the cache", 10, false, true, false},
    {"Bloom 10 but in the last level", 10, true, false, false},
    {"ours, and Bloom 10 but in the last level", 10, true, false, true},
};
constexpr size_t kStock = 0;
constexpr size_t kOurs = 4;

// The share of the keys in each sorted run, from the last level up.
std::vector<double> SharesOf(int runs) {
  if (runs == 1) return {1};
  if (runs == 5) return {.90, .09, .009, .0005, .0005};
  return {.75, .1875, .046, .0115, .003, .0006, .0005, .0005, .0004};
}

rocksdb::Options OptionsFor(const Shape& shape, uint64_t cache_bytes) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 20;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;
  options.max_open_files = -1;
  options.avoid_flush_during_shutdown = true;
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(cache_bytes, 0);
  table.cache_index_and_filter_blocks = shape.cached;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(shape.bloom_bits));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

// Files of so many keys of one run, ingested together.
void WriteRun(rocksdb::DB* db, const rocksdb::Options& options, const std::string& directory,
              uint64_t begin, uint64_t end) {
  std::vector<Key> keys;
  keys.reserve(end - begin);
  for (uint64_t i = begin; i < end; ++i) keys.emplace_back(i);
  std::ranges::sort(keys, [](const Key& a, const Key& b) { return a < b; });
  constexpr uint64_t kKeysOfFile = 1'600'000;
  std::vector<std::string> files;
  std::unique_ptr<rocksdb::SstFileWriter> writer;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (writer == nullptr) {
      files.push_back(directory + "/coming" + std::to_string(files.size()));
      writer = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), options);
      Check(writer->Open(files.back()), "write a file");
    }
    Check(writer->Put(keys[i], kValue), "write a file");
    if ((i + 1) % kKeysOfFile == 0 || i + 1 == keys.size()) {
      Check(writer->Finish(), "write a file");
      writer.reset();
    }
  }
  rocksdb::IngestExternalFileOptions move;
  move.move_files = true;
  Check(db->IngestExternalFile(files, move), "ingest a run");
}

// Made once for each kind of SST filters; each shape opens a copy of its own, of linked files.
std::string CopyFor(const Shape& shape, const Arguments& arguments, int runs) {
  namespace fs = std::filesystem;
  const std::string base = arguments.directory + "/" + std::to_string(runs) + "_" +
                           std::to_string(shape.bloom_bits) + (shape.last_without ? "n" : "");
  const std::string copy =
      base + (shape.cached ? ".cached" : "") + (shape.filtered ? ".filtered" : "") + ".copy";
  if (!fs::exists(base)) {
    fs::create_directories(base);
    const rocksdb::Options options = OptionsFor(shape, 32 << 20);
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, base, &db), "open a database");
    uint64_t begin = 0;
    const std::vector<double> shares = SharesOf(runs);
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto count = static_cast<uint64_t>(shares[i] * static_cast<double>(arguments.keys));
      const uint64_t end = i + 1 == shares.size() ? arguments.keys : begin + count;
      rocksdb::Options of_run = options;
      if (i == 0 && shape.last_without) {
        auto table = *options.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
        table.filter_policy = nullptr;
        of_run.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
      }
      WriteRun(db, of_run, base, begin, end);
      begin = end;
    }
    Check(db->Close(), "close a database");
    delete db;
  }
  fs::remove_all(copy);
  fs::create_directories(copy);
  for (const auto& entry : fs::directory_iterator(base)) {
    const fs::path to = fs::path(copy) / entry.path().filename();
    if (entry.path().extension() == ".sst") {
      fs::create_hard_link(entry.path(), to);
    } else if (entry.is_regular_file()) {
      fs::copy(entry.path(), to);
    }
  }
  return copy;
}

class Subject {
 public:
  Subject(const Shape& shape, const Arguments& arguments, int runs, uint64_t cache_bytes)
      : shape_(shape), keys_(arguments.keys) {
    const rocksdb::Options options = OptionsFor(shape, cache_bytes);
    const std::string path = CopyFor(shape, arguments, runs);
    if (shape.filtered) {
      const double begin = OfProcess();
      auto filtered =
          lsm::FilteredDB::Open({.directory = "", .fpr = 0.003, .faults = {}}, options, path);
      if (!filtered.ok()) Wrong(filtered.status().message());
      (*filtered)->filter().WaitUntilCounted();
      counting_seconds_ = OfProcess() - begin;
      filtered_ = filtered->get();
      db_ = *std::move(filtered);
    } else {
      rocksdb::DB* db = nullptr;
      Check(rocksdb::DB::Open(options, path, &db), "open a database");
      db_.reset(db);
    }
    family_ = db_->DefaultColumnFamily();
    rocksdb::WriteOptions write;
    write.disableWAL = true;
    for (uint64_t i = 0; i < kInMemtable; ++i) {
      Check(db_->Put(write, Key((uint64_t{3} << 60) + i), kValue), "put");
    }
    // From here on the cache is as warm as its size allows.
    const std::unique_ptr<rocksdb::Iterator> all(db_->NewIterator({}));
    uint64_t rows = 0;
    for (all->SeekToFirst(); all->Valid(); all->Next()) ++rows;
    if (rows != keys_ + kInMemtable) Wrong("rows are missing from " + path);
  }

  const Shape& shape() const { return shape_; }
  rocksdb::DB* db() const { return db_.get(); }
  lsm::FilteredDB* filtered() const { return filtered_; }
  double counting_seconds() const { return counting_seconds_; }

  // Seconds; `salt` chooses the keys.
  double OneByOne(bool present, uint64_t salt) { return Loop(present, salt, true); }
  double InALoop(bool present, uint64_t salt) { return Loop(present, salt, false); }
  double InBatches(bool present, uint64_t salt) {
    const std::vector<Key> keys = Keys(present, salt);
    const std::vector<Slice> slices(keys.begin(), keys.end());
    rocksdb::PinnableSlice values[kBatch];
    rocksdb::Status statuses[kBatch];
    uint64_t found = 0;
    const double begin = OfThread();
    for (uint64_t first = 0; first + kBatch <= kLookups; first += kBatch) {
      db_->MultiGet(read_, family_, kBatch, &slices[first], values, statuses);
      for (size_t i = 0; i < kBatch; ++i) {
        if (!statuses[i].ok()) continue;
        ++found;
        values[i].Reset();
      }
    }
    const double took = OfThread() - begin;
    if (found != (present ? kLookups / kBatch * kBatch : 0)) Wrong("a batch of lookups");
    return took;
  }
  // Short ranges that hold nothing: from an absent key to right after it.
  double EmptyRanges(uint64_t salt) {
    const std::vector<Key> keys = Keys(false, salt);
    Slice bound;
    rocksdb::ReadOptions read = read_;
    read.iterate_upper_bound = &bound;
    std::string end;
    const double begin = OfThread();
    for (const Key& key : keys) {
      const Slice first = key;
      end.assign(first.data(), first.size());
      end += '\xff';
      bound = end;
      const std::unique_ptr<rocksdb::Iterator> range(db_->NewIterator(read, family_));
      range->Seek(first);
      if (range->Valid()) Wrong("an empty range");
    }
    return OfThread() - begin;
  }
  double BlocksOfOneEmptyRange(uint64_t salt) {
    rocksdb::SetPerfLevel(rocksdb::kEnableCount);
    rocksdb::get_perf_context()->Reset();
    EmptyRanges(salt);
    const uint64_t blocks = rocksdb::get_perf_context()->block_cache_hit_count +
                            rocksdb::get_perf_context()->block_read_count;
    rocksdb::SetPerfLevel(rocksdb::kDisable);
    return static_cast<double>(blocks) / kLookups;
  }
  double BlocksOfOneMiss(uint64_t salt) {
    rocksdb::SetPerfLevel(rocksdb::kEnableCount);
    rocksdb::get_perf_context()->Reset();
    InALoop(false, salt);
    const auto* const counts = rocksdb::get_perf_context();
    const uint64_t blocks = counts->block_cache_hit_count + counts->block_read_count;
    rocksdb::SetPerfLevel(rocksdb::kDisable);
    return static_cast<double>(blocks) / kLookups;
  }

 private:
  uint64_t Number(bool present, uint64_t salt, uint64_t i) const {
    return Mix(salt * kLookups + i) % keys_ + (present ? 0 : kAbsent);
  }
  // Made before the clock runs: their making is no part of a lookup.
  std::vector<Key> Keys(bool present, uint64_t salt) const {
    std::vector<Key> keys;
    keys.reserve(kLookups);
    for (uint64_t i = 0; i < kLookups; ++i) keys.emplace_back(Number(present, salt, i));
    return keys;
  }
  double Loop(bool present, uint64_t salt, bool waits) {
    const std::vector<Key> keys = Keys(present, salt);
    uint64_t found = 0;
    uint64_t nothing = 0;
    const auto expected =
        static_cast<uint64_t>(present ? rocksdb::Status::kOk : rocksdb::Status::kNotFound);
    rocksdb::PinnableSlice value;
    const double begin = OfThread();
    for (uint64_t i = 0; i < kLookups; ++i) {
      const rocksdb::Status status = db_->Get(read_, family_, keys[i + nothing], &value);
      if (status.ok()) {
        ++found;
        value.Reset();
      }
      // The next key depends on the answer.
      if (waits) nothing = static_cast<uint64_t>(status.code()) - expected;
    }
    const double took = OfThread() - begin;
    if (found != (present ? kLookups : 0)) Wrong("a lookup");
    return took;
  }

  const Shape shape_;
  const uint64_t keys_;
  const rocksdb::ReadOptions read_;
  std::unique_ptr<rocksdb::DB> db_;
  lsm::FilteredDB* filtered_ = nullptr;
  rocksdb::ColumnFamilyHandle* family_ = nullptr;
  double counting_seconds_ = 0;
};

struct Way {
  const char* name;
  double (Subject::*look_up)(bool present, uint64_t salt);
  bool present;
  const char* goal[3];  // with 9, 5, 1 runs
};
constexpr Way kWays[] = {
    {"Get that misses, one by one", &Subject::OneByOne, false, {">= 13", ">= 9", ""}},
    {"Get that misses, in a loop", &Subject::InALoop, false, {">= 18", ">= 13", ""}},
    {"MultiGet of 32 that miss", &Subject::InBatches, false, {">= 24", ">= 17", ""}},
    {"Get that hits", &Subject::InALoop, true, {">= 0.97", ">= 0.97", ">= 0.97"}},
    {"MultiGet of 32 that hit", &Subject::InBatches, true, {">= 0.97", ">= 0.97", ">= 0.97"}},
};

uint64_t FileKeysIn(rocksdb::DB* db) {
  rocksdb::TablePropertiesCollection files;
  Check(db->GetPropertiesOfAllTables(&files), "read properties");
  uint64_t keys = 0;
  for (const auto& [path, properties] : files) keys += properties->num_entries;
  return keys;
}

void Readers(std::vector<std::unique_ptr<Subject>>& subjects, uint64_t rounds) {
  for (const int readers : {1, 2, 4}) {
    std::vector<double> times[2];
    for (uint64_t round = 0; round < rounds; ++round) {
      for (const size_t which : {kStock, kOurs}) {
        std::vector<double> each(static_cast<size_t>(readers));
        std::vector<std::thread> threads;
        for (int i = 0; i < readers; ++i) {
          threads.emplace_back([&, i] {
            each[static_cast<size_t>(i)] =
                subjects[which]->InALoop(false, 1000 + 10 * round + static_cast<uint64_t>(i));
          });
        }
        for (std::thread& thread : threads) thread.join();
        double sum = 0;
        for (const double one : each) sum += one;
        times[which == kOurs].push_back(1e9 * sum / readers / kLookups);
      }
    }
    const Ratio ratio = RatioOf(times[0], times[1]);
    std::printf("  %d reader%s  %6.0f ns, ours %6.0f ns   %.1f [%.1f..%.1f]\n", readers,
                readers == 1 ? " " : "s", Median(times[0]), Median(times[1]), ratio.median,
                ratio.least, ratio.greatest);
  }
}

// The filter has keys alone, so a Seek goes to each sorted run: a filter of ranges could save that.
void Seeks(const Arguments& arguments, int runs) {
  Subject stock(kShapes[kStock], arguments, runs, uint64_t{4} << 30);
  Subject ours(kShapes[kOurs], arguments, runs, uint64_t{4} << 30);
  std::vector<double> times[4];
  for (uint64_t round = 0; round < arguments.rounds; ++round) {
    times[0].push_back(1e9 * stock.EmptyRanges(round) / kLookups);
    times[1].push_back(1e9 * ours.EmptyRanges(round) / kLookups);
    times[2].push_back(1e9 * stock.InALoop(false, round) / kLookups);
    times[3].push_back(1e9 * ours.InALoop(false, round) / kLookups);
  }
  const Ratio to_get = RatioOf(times[1], times[3]);
  std::printf("\nShort ranges that hold nothing, %d sorted run%s, %llu keys, all in the cache\n",
              runs, runs == 1 ? "" : "s", static_cast<unsigned long long>(arguments.keys));
  std::printf("  Seek                      Bloom 10 %7.0f ns, ours %7.0f ns, %.2f blocks\n",
              Median(times[0]), Median(times[1]), ours.BlocksOfOneEmptyRange(77));
  std::printf("  Get of the same keys      Bloom 10 %7.0f ns, ours %7.0f ns, %.4f blocks\n",
              Median(times[2]), Median(times[3]), ours.BlocksOfOneMiss(77));
  std::printf("  Seek : Get, ours  %.1f [%.1f..%.1f]\n", to_get.median, to_get.least,
              to_get.greatest);
}

void Reads(const Arguments& arguments, int runs, bool all_cached) {
  // A tenth of the data, where not all of it.
  const uint64_t cache = all_cached ? uint64_t{4} << 30 : arguments.keys * 40 / 10;
  std::printf("\nLookups, %d sorted run%s, %llu keys of 16 + 20 bytes%s\n", runs,
              runs == 1 ? "" : "s", static_cast<unsigned long long>(arguments.keys),
              all_cached ? ", all in the cache" : ", ten times the cache");
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const Shape& shape : kShapes) {
    subjects.push_back(std::make_unique<Subject>(shape, arguments, runs, cache));
  }
  std::printf("  ns of processor time, median\n");
  const std::string of = Printed(", %d sorted run%s%s", runs, runs == 1 ? "" : "s",
                                 all_cached ? "" : ", ten times the cache");
  for (const Way& way : kWays) {
    std::vector<std::vector<double>> times(subjects.size());
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      for (size_t i = 0; i < subjects.size(); ++i) {
        times[i].push_back(1e9 * (subjects[i].get()->*way.look_up)(way.present, round) / kLookups);
      }
    }
    std::printf("  %s\n", way.name);
    for (size_t i = 0; i < subjects.size(); ++i) {
      std::printf("    %-42s %8.0f\n", kShapes[i].name, Median(times[i]));
    }
    const Ratio ratio = RatioOf(times[kStock], times[kOurs]);
    const char* const goal = way.goal[runs == 9 ? 0 : runs == 5 ? 1 : 2];
    std::printf("    Bloom 10 : ours  %.2f [%.2f..%.2f]%s%s\n", ratio.median, ratio.least,
                ratio.greatest, *goal != '\0' && all_cached ? "   goal " : "",
                all_cached ? goal : "");
    Report({.work = way.name + of,
            .beside = "Bloom filters of 10 bits in each file",
            .now = Printed("%.0f ns; %.0f ns", Median(times[kOurs]), Median(times[kStock])),
            .ratio = Printed("%.2fx as fast", ratio.median),
            .goal = all_cached ? goal : ""});
  }
  const double stock = subjects[kStock]->BlocksOfOneMiss(77);
  const double ours = subjects[kOurs]->BlocksOfOneMiss(77);
  std::printf("  blocks touched by a miss  %.4f, ours %.4f: 1/%.0f%s\n", stock, ours,
              ours > 0 ? stock / ours : 0, runs == 9 ? "   goal <= 1/25" : "");
  Report({.work = "blocks that a miss touches" + of,
          .beside = "Bloom filters of 10 bits in each file",
          .now = Printed("%.4f; %.4f", ours, stock),
          .ratio = Printed("1/%.0f", ours > 0 ? stock / ours : 0),
          .goal = runs == 9 ? "<= 1/25" : ""});
  if (!all_cached) return;
  const lsm::TreeFilter::Figures figures = subjects[kOurs]->filtered()->filter().tree().figures();
  std::printf("  memory  %.2f bits a (key, file), by formula %.3f %% pass falsely   goal <= 13.6\n",
              8.0 * static_cast<double>(figures.filter.size_bytes) /
                  static_cast<double>(figures.filter.keys),
              100 * figures.filter.expected_fpr);
  Report(
      {.work = "memory of the filter" + of,
       .now = Printed("%.3f %% of absent keys pass, by formula", 100 * figures.filter.expected_fpr),
       .ratio =
           Printed("%.2f bits a (key, file)", 8.0 * static_cast<double>(figures.filter.size_bytes) /
                                                  static_cast<double>(figures.filter.keys)),
       .goal = "<= 13.6"});
  if (runs == 9) {
    std::printf("  readers at once, Get that misses\n");
    Readers(subjects, arguments.rounds);
  }
  // Counted before from the SST files; now from the key files.
  const double from_sst = subjects[kOurs]->counting_seconds();
  const auto keys = static_cast<double>(FileKeysIn(subjects[kOurs]->db()));
  subjects.clear();
  const std::string path = arguments.directory + "/" + std::to_string(runs) + "_10n.filtered.copy";
  const rocksdb::Options options = OptionsFor(kShapes[kOurs], cache);
  const double begin = OfProcess();
  auto again = lsm::FilteredDB::Open({.directory = "", .fpr = 0.003, .faults = {}}, options, path);
  if (!again.ok()) Wrong(again.status().message());
  (*again)->filter().WaitUntilCounted();
  const double from_keys = OfProcess() - begin;
  std::printf(
      "  counted anew, by a core: from SST files %.1f M keys/s (goal >= 4), from key files "
      "%.1f M keys/s (goal >= 15)\n",
      keys / from_sst / 1e6, keys / from_keys / 1e6);
  Report({.work = "counting the filter anew from SST files, one core" + of,
          .ratio = Printed("%.1f million keys/s", keys / from_sst / 1e6),
          .goal = ">= 4"});
  Report({.work = "counting the filter anew from key files, one core" + of,
          .ratio = Printed("%.1f million keys/s", keys / from_keys / 1e6),
          .goal = ">= 15"});
}

// --- writes ------------------------------------------------------------------------------------

void AwaitCompactions(rocksdb::DB* db) {
  uint64_t pending = 1;
  uint64_t running = 1;
  while (pending + running > 0) {
    usleep(10'000);
    db->GetIntProperty(rocksdb::DB::Properties::kCompactionPending, &pending);
    db->GetIntProperty(rocksdb::DB::Properties::kNumRunningCompactions, &running);
  }
}

struct Written {
  double seconds = 0;  // the time of all threads together
  double peak = 0;     // entries in a full compaction, of those before it
};

Written WriteAll(const Arguments& arguments, bool filtered, size_t value_bytes, uint64_t puts) {
  const std::string path = arguments.directory + "/written";
  std::filesystem::remove_all(path);
  rocksdb::Options options = OptionsFor(kShapes[filtered ? kOurs : kStock], 512 << 20);
  options.disable_auto_compactions = false;
  options.write_buffer_size = 16 << 20;
  options.target_file_size_base = 16 << 20;
  options.max_bytes_for_level_base = 64 << 20;
  options.max_bytes_for_level_multiplier = 4;
  options.max_background_jobs = 2;
  options.optimize_filters_for_hits = filtered;
  std::unique_ptr<rocksdb::DB> db;
  lsm::FilteredDB* ours = nullptr;
  if (filtered) {
    auto made = lsm::FilteredDB::Open({.directory = "", .fpr = 0.003, .faults = {}}, options, path);
    if (!made.ok()) Wrong(made.status().message());
    ours = made->get();
    ours->filter().WaitUntilCounted();
    db = *std::move(made);
  } else {
    rocksdb::DB* raw = nullptr;
    Check(rocksdb::DB::Open(options, path, &raw), "open a database");
    db.reset(raw);
  }
  Written written;
  const std::string value(value_bytes, 'v');
  const double begin = OfProcess();
  for (uint64_t i = 0; i < puts; ++i) Check(db->Put({}, Key(Mix(i) % puts), value), "put");
  Check(db->Flush({}), "flush");
  AwaitCompactions(db.get());
  if (ours != nullptr) ours->filter().WaitUntilReconciled();
  written.seconds = OfProcess() - begin;
  if (ours == nullptr) return written;

  const lsm::TreeFilter& tree = ours->filter().tree();
  const uint64_t before = tree.figures().filter.keys;
  std::atomic<uint64_t> peak{before};
  std::atomic<bool> ends{false};
  std::thread watch([&] {
    while (!ends) {
      peak = std::max<uint64_t>(peak, tree.figures().filter.keys);
      usleep(1000);
    }
  });
  rocksdb::CompactRangeOptions all;
  all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  Check(db->CompactRange(all, nullptr, nullptr), "compact all");
  ours->filter().WaitUntilReconciled();
  ends = true;
  watch.join();
  written.peak = static_cast<double>(peak) / static_cast<double>(before);
  return written;
}

void Writes(const Arguments& arguments) {
  const uint64_t puts = arguments.keys / 5;
  std::printf("\nWrites, %llu puts of random keys, processor time with all compactions\n",
              static_cast<unsigned long long>(puts));
  for (const auto& [bytes, goal] : {std::pair<size_t, const char*>{20, "<= 1.08"},
                                    std::pair<size_t, const char*>{100, "<= 1.06"}}) {
    std::vector<double> times[2];
    double peak = 0;
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      for (const size_t turn : {0, 1}) {
        const bool filtered = (round + turn) % 2 == 1;
        const Written written = WriteAll(arguments, filtered, bytes, puts);
        times[filtered].push_back(1e9 * written.seconds / static_cast<double>(puts));
        peak = std::max(peak, written.peak);
      }
    }
    const Ratio ratio = RatioOf(times[1], times[0]);
    std::printf("  %3zu bytes  %6.0f ns, ours %6.0f ns   %.3f [%.3f..%.3f]   goal %s\n", 16 + bytes,
                Median(times[0]), Median(times[1]), ratio.median, ratio.least, ratio.greatest,
                goal);
    std::printf("             entries at the peak of a full compaction %.4f   goal <= 1.01\n",
                peak);
    Report({.work = Printed("put, keys and values of %zu bytes, with all compactions", 16 + bytes),
            .beside = "plain RocksDB",
            .now = Printed("%.0f ns; %.0f ns of the processor", Median(times[1]), Median(times[0])),
            .ratio = Printed("%.3fx", ratio.median),
            .goal = Printed("%sx", goal)});
    Report({.work = "entries of the filter at the peak of a full compaction",
            .beside = "before it",
            .ratio = Printed("%.4fx", peak),
            .goal = "<= 1.01x"});
  }
  std::filesystem::remove_all(arguments.directory + "/written");
}

// --- the filter alone, beside a writer that never rests ----------------------------------------

void BesideAWriter(const Arguments& arguments) {
  constexpr uint64_t kFileKeys = 50'000;
  const uint64_t files = std::max<uint64_t>(1, arguments.keys / 4 / kFileKeys);
  const std::string directory = arguments.directory + "/keys";
  std::filesystem::remove_all(directory);
  // In a braced initializer GCC 12 takes the functions of `faults` for uninitialized, at -O3.
  lsm::TreeFilter::Options options;
  options.directory = directory;
  options.seed = 1;
  auto made = lsm::TreeFilter::Create(options);
  if (!made.ok()) Wrong(made.status().message());
  lsm::TreeFilter& tree = **made;
  (void)tree.families().MemtableMade(0);
  tree.families().ClearBypassReasons(0, lsm::kNotShown);
  std::vector<uint64_t> live;
  const auto add = [&](uint64_t number) {
    std::vector<uint64_t> hashes(kFileKeys);
    for (uint64_t i = 0; i < kFileKeys; ++i) {
      hashes[i] = tree.HashOf(0, Slice(Key(number * kFileKeys + i)).ToStringView());
    }
    lsm::FileIdentity identity{};
    std::memcpy(identity.data(), &number, sizeof number);
    identity[15] = 1;
    tree.FileCreated({.number = number, .family = 0, .identity = identity}, std::move(hashes),
                     std::nullopt);
    live.push_back(number);
  };
  for (uint64_t i = 1; i <= files; ++i) add(i);
  tree.EndCounting();

  const auto look_up = [&](uint64_t salt) {
    constexpr uint64_t kAsked = 10 * kLookups;
    uint64_t found = 0;
    const double begin = OfThread();
    for (uint64_t i = 0; i < kAsked; ++i) {
      found += tree.MayContain(0, Slice(Key(kAbsent + salt * kAsked + i)).ToStringView());
    }
    const double took = OfThread() - begin;
    if (found > kAsked / 100) Wrong("what is not there was let pass");
    return 1e9 * took / kAsked;
  };
  std::vector<double> times[2];
  uint64_t asked = 0;
  uint64_t disturbed = 0;
  uint64_t next = files + 1;
  for (uint64_t round = 0; round < arguments.rounds; ++round) {
    times[0].push_back(look_up(2 * round));
    std::atomic<bool> ends{false};
    std::thread writer([&] {
      while (!ends) {
        add(next++);
        const uint64_t oldest = live.front();
        live.erase(live.begin());
        tree.FileDeleted(oldest);
        (void)tree.Reconcile([&] { return live; });
      }
    });
    const uint64_t before = tree.figures().disturbed;
    times[1].push_back(look_up(2 * round + 1));
    ends = true;
    writer.join();
    disturbed += tree.figures().disturbed - before;
    asked += 10 * kLookups;
  }
  const Ratio ratio = RatioOf(times[1], times[0]);
  std::printf("\nThe filter alone, %llu keys\n",
              static_cast<unsigned long long>(tree.figures().filter.keys));
  std::printf(
      "  a lookup %.0f ns; beside a writer that never rests %.0f ns   %.2f [%.2f..%.2f]   "
      "goal <= 1.2\n",
      Median(times[0]), Median(times[1]), ratio.median, ratio.least, ratio.greatest);
  std::printf("  disturbed %.4f %%   goal <= 0.05 %%\n",
              100.0 * static_cast<double>(disturbed) / static_cast<double>(asked));
  Report({.work = "a lookup in the filter beside a writer that never rests",
          .beside = "a lookup alone",
          .now = Printed("%.0f ns; %.0f ns", Median(times[1]), Median(times[0])),
          .ratio = Printed("%.2fx", ratio.median),
          .goal = "<= 1.2x"});
  Report({.work = "lookups that the writer makes pass though the key is absent",
          .ratio = Printed("%.4f %%",
                           100.0 * static_cast<double>(disturbed) / static_cast<double>(asked)),
          .goal = "<= 0.05 %"});
}

int Main(const Arguments& arguments, const std::vector<std::string>& parts) {
  const auto wants = [&](const char* part) {
    return parts.empty() || std::ranges::find(parts, part) != parts.end();
  };
#ifdef NDEBUG
  std::printf("RocksDB %s\n", ROCKSDB_BENCHMARKED);
#else
  std::printf("RocksDB %s; this program has its assertions, too\n", ROCKSDB_BENCHMARKED);
#endif
  if (wants("reads")) {
    for (const int runs : {9, 5, 1}) {
      if (arguments.runs == 0 || arguments.runs == runs) Reads(arguments, runs, true);
    }
    if (arguments.runs == 0) Reads(arguments, 9, false);
  }
  if (wants("seeks")) {
    for (const int runs : {9, 5, 1}) {
      if (arguments.runs == 0 || arguments.runs == runs) Seeks(arguments, runs);
    }
  }
  if (wants("writes")) Writes(arguments);
  if (wants("filter")) BesideAWriter(arguments);
  return 0;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // it takes minutes
  tamis::Arguments arguments;
  std::vector<std::string> parts;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--keys" && i + 1 < argc) {
      arguments.keys = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--rounds" && i + 1 < argc) {
      arguments.rounds = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--runs" && i + 1 < argc) {
      arguments.runs = std::atoi(argv[++i]);
    } else if (name == "--directory" && i + 1 < argc) {
      arguments.directory = argv[++i];
    } else if (name == "reads" || name == "seeks" || name == "writes" || name == "filter") {
      parts.push_back(name);
    } else {
      std::fprintf(stderr,
                   "usage: lsm_benchmark [--keys N] [--rounds N] [--runs 9|5|1] [--directory DIR] "
                   "[reads|seeks|writes|filter ...]\n");
      return 2;
    }
  }
  arguments.keys = std::max<uint64_t>(arguments.keys, 100'000);
  arguments.rounds = std::max<uint64_t>(arguments.rounds, 1);
  if (arguments.directory.empty()) {
    arguments.directory =
        std::filesystem::temp_directory_path() / ("lsm_benchmark." + std::to_string(getpid()));
  }
  std::filesystem::create_directories(arguments.directory);
  const int code = tamis::Main(arguments, parts);
  std::filesystem::remove_all(arguments.directory);
  return code;
}
