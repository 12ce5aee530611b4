// The cost of each filter: bits a key, measured false-positive rate, and the time of each operation
// as a multiple of the floor: reading one random cache line of the same memory, prefetched.
//
//   filter_benchmark [--churn] [KEYS [NAME...]]    default 1,000,000, in cache; 50,000,000 is far
//                                                  out of it
//
// One run prints one table; below a filter for which there are goals, the goals. --churn: those
// that erase spans, filled to capacity, while all keys leave and others come, ten times over, and
// after that. Every answer counts: a key that was inserted and is not found ends the run. The times
// are of this thread's processor; where other work shares its caches the floor rises with
// everything else, which the multiples take out for the most part.
#ifdef TAMIS_LIBBLOOM
#include <bloom.h>
#endif
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/floor.h"
#include "tamis/base/random.h"
#include "tamis/filter/blocked_bloom_filter.h"
#include "tamis/filter/blocked_quotient_filter.h"
#include "tamis/filter/blocked_split_counting_bloom_filter.h"
#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/counting_bloom_filter.h"
#include "tamis/filter/cuckoo_filter.h"
#include "tamis/filter/d_left_counting_bloom_filter.h"
#include "tamis/filter/dynamic_count_filter.h"
#include "tamis/filter/projected_counting_bloom_filter.h"
#include "tamis/filter/quotient_filter.h"
#include "tamis/filter/scalable_bloom_filter.h"
#include "tamis/filter/scalable_split_counting_bloom_filter.h"
#include "tamis/filter/split_counting_bloom_filter.h"

namespace tamis {
namespace {

constexpr size_t kBatch = 4096;

std::vector<uint64_t> Keys(uint64_t stream, uint64_t n) {
  std::vector<uint64_t> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = Mix((stream << 40) + i + 1);
  return keys;
}

// Nanoseconds for one random line of `bytes` bytes.
struct Floor {
  double ahead;  // fetched ahead
  double plain;  // in the order in which the processor comes to it
};

Floor MeasureFloor(size_t bytes, const std::vector<uint64_t>& keys) {
  const RandomLines lines(bytes / 64 + 1);
  uint64_t read = 0;
  std::vector<double> ahead;
  std::vector<double> plain;
  for (int run = 0; run < 3; ++run) {
    ahead.push_back(ThreadSeconds([&] { read += lines.Read(keys); }));
    plain.push_back(ThreadSeconds([&] { read += lines.ReadPlain(keys); }));
  }
  if (read != 3 * (2 * keys.size() - RandomLines::kAhead)) std::abort();
  const double nanoseconds = 1e9 / static_cast<double>(keys.size());
  return {Median(ahead) * nanoseconds, Median(plain) * nanoseconds};
}

// The operations of one filter, in floors; none where it lacks the operation, or a goal.
enum Operation {
  kInsert,
  kInsertBulk,
  kHit,
  kHitBulk,
  kMiss,
  kMissBulk,
  kErase,
  kEraseBulk,
  kOperations
};
using Costs = std::array<std::optional<double>, kOperations>;

void PrintRow(const std::string& name, const std::string& properties, const Costs& costs) {
  fmt::print("{:<28} {:<38}", name, properties);
  for (size_t i = 0; i < costs.size(); ++i) {
    fmt::print("{} {:>6}", i % 2 == 0 ? " |" : "",
               costs[i] ? fmt::format("{:.2f}", *costs[i]) : "-");
  }
  fmt::print("\n");
}

#ifdef TAMIS_LIBBLOOM
// A peer: libbloom (Jyri J. Virkki), which hashes the key itself.
class LibBloom {
 public:
  using Options = FilterOptions;
  static Result<LibBloom> Create(const Options& options) {
    LibBloom peer;
    peer.bloom_ = {new bloom{}, [](bloom* b) {
                     bloom_free(b);
                     delete b;
                   }};
    if (bloom_init(peer.bloom_.get(), static_cast<int>(options.capacity), options.fpr) != 0) {
      return InvalidArgument("libbloom: bloom_init failed");
    }
    return peer;
  }
  bool Insert(uint64_t key) { return bloom_add(bloom_.get(), &key, sizeof(key)) >= 0; }
  bool MayContain(uint64_t key) const { return bloom_check(bloom_.get(), &key, sizeof(key)) == 1; }
  void Clear() { bloom_reset(bloom_.get()); }
  size_t SizeBytes() const { return static_cast<size_t>(bloom_->bytes); }

 private:
  std::shared_ptr<bloom> bloom_;
};
#endif

// The keys in spans of kBatch.
void ForEachBatch(const std::vector<uint64_t>& keys, auto&& use) {
  for (size_t i = 0; i < keys.size(); i += kBatch) {
    use(std::span<const uint64_t>(keys).subspan(i, std::min(kBatch, keys.size() - i)));
  }
}

uint64_t CountBits(const Bitmap& answers) {
  uint64_t bits = 0;
  for (const uint64_t word : answers) bits += std::popcount(word);
  return bits;
}

// One filter under measurement.
template <class F>
class Subject {
 public:
  Subject(std::string name, const typename F::Options& options,
          const std::vector<uint64_t>& floor_keys)
      : name_(std::move(name)),
        filter_(*F::Create(options)),
        floor_(MeasureFloor(filter_.SizeBytes(), floor_keys)) {}

  void Measure(const std::vector<uint64_t>& keys, const std::vector<uint64_t>& absent,
               const std::optional<Costs>& goals) {
    Costs costs;
    const auto clear = [&] { filter_.Clear(); };
    costs[kInsert] = TimeThrice(keys, clear, [&] {
      for (const uint64_t key : keys) (void)filter_.Insert(key);
    });
    if constexpr (kInsertsSpans) {
      costs[kInsertBulk] = TimeThrice(keys, clear, [&] {
        ForEachBatch(keys, [&](auto batch) { (void)filter_.Insert(batch); });
      });
    }
    const uint64_t false_positives = MeasureLookups(keys, absent, &costs);
    if constexpr (kErases) {
      F copy = filter_;
      const auto refill = [&] { copy = filter_; };
      costs[kErase] = TimeThrice(keys, refill, [&] {
        for (const uint64_t key : keys) (void)copy.Erase(key);
      });
      if constexpr (kErasesSpans) {
        costs[kEraseBulk] = TimeThrice(keys, refill, [&] {
          ForEachBatch(keys, [&](auto batch) { (void)copy.Erase(batch); });
        });
        if (copy.Count() != 0) std::abort();
      }
    }
    Print(name_, keys.size(), false_positives, costs);
    if (goals) {
      PrintRow("  goal", "", *goals);
      ReportGoals(keys.size(), costs, *goals);
    }
  }

  // All keys leave and others come, kGenerations times.
  void Churn(const std::vector<uint64_t>& first, const std::vector<uint64_t>& absent) {
    if constexpr (kInsertsSpans && kErasesSpans) {
      constexpr uint64_t kGenerations = 10;
      ForEachBatch(first, [&](auto batch) { (void)filter_.Insert(batch); });
      Costs costs;
      MeasureLookups(first, absent, &costs);
      Print(name_, first.size(), 0, costs);

      std::vector<uint64_t> leave = first;
      costs = {};
      costs[kInsertBulk] = 0;
      costs[kEraseBulk] = 0;
      for (uint64_t generation = 1; generation <= kGenerations; ++generation) {
        const std::vector<uint64_t> come = Keys(2 + generation, first.size());
        uint64_t changed = 0;
        // A batch leaves and another one comes in its place: the filter stays full.
        for (size_t i = 0; i < come.size(); i += kBatch) {
          const size_t n = std::min(kBatch, come.size() - i);
          const auto timed = [&](Operation operation, auto&& change) {
            *costs[operation] += ThreadSeconds([&] { changed += CountBits(change()); });
          };
          timed(kEraseBulk, [&] { return filter_.Erase(std::span(leave).subspan(i, n)); });
          timed(kInsertBulk, [&] { return filter_.Insert(std::span(come).subspan(i, n)); });
        }
        if (changed != 2 * come.size()) {
          fmt::print(stderr, "{}: refused {} changes\n", name_, 2 * come.size() - changed);
          std::exit(1);
        }
        leave = come;
      }
      for (const Operation operation : {kInsertBulk, kEraseBulk}) {
        *costs[operation] *= 1e9 / static_cast<double>(first.size() * kGenerations) / floor_.ahead;
      }
      MeasureLookups(leave, absent, &costs);
      Print("  10 x as many keys later", first.size(), 0, costs);
    }
  }

 private:
  static constexpr bool kInsertsSpans = requires(F f) { f.Insert(std::span<const uint64_t>()); };
  static constexpr bool kAnswersSpans = requires(F f) {
    f.MayContain(std::span<const uint64_t>());
  };
  static constexpr bool kErases = requires(F f) { f.Erase(uint64_t{}); };
  static constexpr bool kErasesSpans = requires(F f) { f.Erase(std::span<const uint64_t>()); };

  double Time(const std::vector<uint64_t>& keys, auto&& run) const {
    return ThreadSeconds(run) * 1e9 / static_cast<double>(keys.size()) / floor_.ahead;
  }
  // The median of three runs of run(), each after prepare().
  double TimeThrice(const std::vector<uint64_t>& keys, auto&& prepare, auto&& run) const {
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) {
      prepare();
      times.push_back(Time(keys, run));
    }
    return Median(times);
  }
  uint64_t Count(const std::vector<uint64_t>& asked) const {
    uint64_t found = 0;
    for (const uint64_t key : asked) found += filter_.MayContain(key);
    return found;
  }
  uint64_t CountInBulk(const std::vector<uint64_t>& asked) const {
    uint64_t found = 0;
    ForEachBatch(asked, [&](auto batch) { found += CountBits(filter_.MayContain(batch)); });
    return found;
  }

  // Returns how many of the absent ones were found. Every present one must be.
  uint64_t MeasureLookups(const std::vector<uint64_t>& present, const std::vector<uint64_t>& absent,
                          Costs* costs) const {
    uint64_t hits = 0;
    uint64_t false_positives = 0;
    const auto time = [&](const std::vector<uint64_t>& asked, auto&& lookups) {
      return TimeThrice(
          asked, [] {}, lookups);
    };
    (*costs)[kHit] = time(present, [&] { hits = Count(present); });
    (*costs)[kMiss] = time(absent, [&] { false_positives = Count(absent); });
    uint64_t bulk_hits = hits;
    uint64_t bulk_false_positives = false_positives;
    if constexpr (kAnswersSpans) {
      (*costs)[kHitBulk] = time(present, [&] { bulk_hits = CountInBulk(present); });
      (*costs)[kMissBulk] = time(absent, [&] { bulk_false_positives = CountInBulk(absent); });
    }
    if (hits != present.size() || bulk_hits != present.size() ||
        bulk_false_positives != false_positives) {
      fmt::print(stderr, "{}: of {} keys {} were found, {} in bulk; of others {}, {} in bulk\n",
                 name_, present.size(), hits, bulk_hits, false_positives, bulk_false_positives);
      std::exit(1);
    }
    return false_positives;
  }

  void ReportGoals(size_t keys, const Costs& costs, const Costs& goals) const {
    static constexpr std::array<const char*, kOperations> kNames = {
        "insert",
        "insert, in spans",
        "lookup of a key that is there",
        "lookup of a key that is there, in spans",
        "lookup of an absent key",
        "lookup of an absent key, in spans",
        "erase",
        "erase, in spans"};
    const double bits = static_cast<double>(filter_.SizeBytes()) * 8 / static_cast<double>(keys);
    for (size_t i = 0; i < kOperations; ++i) {
      if (!goals[i] || !costs[i]) continue;
      Report({.work = fmt::format("{}, {} keys: {}", name_, keys, kNames[i]),
              .beside = "a read of a random cache line, fetched ahead",
              .now = fmt::format("{:.1f} ns; {:.1f} ns; {:.2f} bits a key",
                                 *costs[i] * floor_.ahead, floor_.ahead, bits),
              .ratio = fmt::format("{:.2f}x", *costs[i]),
              .goal = fmt::format("<= {:.2f}x", *goals[i])});
    }
  }

  void Print(const std::string& name, size_t keys, uint64_t false_positives,
             const Costs& costs) const {
    const auto n = static_cast<double>(keys);
    const double bits = static_cast<double>(filter_.SizeBytes()) * 8 / n;
    const double fpr = static_cast<double>(false_positives) / n;
    PrintRow(name,
             fmt::format("{:>6.2f} {:>8} {:>6} | {:>6.1f} {:>6.2f}", bits,
                         fpr == 0 ? "-" : fmt::format("{:.4f}", fpr * 100),
                         fpr == 0 ? "-" : fmt::format("{:.2f}", bits / std::log2(1 / fpr)),
                         floor_.ahead, floor_.plain / floor_.ahead),
             costs);
  }

  std::string name_;
  F filter_;
  Floor floor_;
};

// The goals of a filter, in floors, when it lies in the caches and when it is far larger.
struct Goals {
  std::optional<Costs> in_cache;
  std::optional<Costs> beyond;
};
constexpr uint64_t kInCache = 2'000'000;
constexpr uint64_t kBeyond = 20'000'000;
constexpr std::nullopt_t kNone = std::nullopt;
constexpr Goals kInsertOnly{Costs{kNone, kNone, kNone, 1.05, kNone, 1.05, kNone, kNone},
                            Costs{kNone, 1.1, 1.0, 1.05, 1.0, 1.05, kNone, kNone}};
constexpr Goals kDeletable{Costs{kNone, kNone, kNone, 2.5, kNone, 2.5, kNone, 3.0},
                           Costs{kNone, 2.5, 4.0, 1.5, 4.0, 1.5, kNone, 2.5}};
constexpr Goals kProjection{kNone, Costs{kNone, 4.0, kNone, 1.0, kNone, 1.0, kNone, 4.0}};
constexpr Goals kBlockedCounting{kNone, Costs{kNone, 1.8, kNone, 1.8, kNone, 1.8, kNone, 1.8}};
constexpr Goals kCuckoo{kNone, Costs{kNone, 6.0, kNone, 2.1, kNone, 2.1, kNone, 4.5}};
constexpr Goals kSemiSorted{kNone, Costs{kNone, kNone, kNone, 5.0, kNone, 5.0, kNone, kNone}};
constexpr Goals kDLeft{Costs{kNone, kNone, kNone, 4.0, kNone, 4.0, kNone, kNone},
                       Costs{kNone, kNone, kNone, 4.0, kNone, 4.0, kNone, kNone}};

// Runs the filters whose names contain one of `only`; all when `only` is empty.
void Run(bool churn, uint64_t n, const std::vector<std::string>& only) {
  const std::vector<uint64_t> keys = Keys(1, n);
  const std::vector<uint64_t> absent = Keys(2, n);
  fmt::print(
      "{} keys; floor in ns, operations in floors; \"bulk\" = spans of {}\n"
      "a floor is fetched ahead; \"plain\": without that, in floors\n",
      n, kBatch);
  fmt::print("{:<28} {:>6} {:>8} {:>6} | {:>6} {:>6}", "filter", "b/key", "fpr %", "/bound",
             "floor", "plain");
  for (const char* operation : {"insert", "hit", "miss", "erase"}) {
    fmt::print(" | {:>6} {:>6}", operation, "bulk");
  }
  fmt::print("\n");
  const auto measure = [&]<class F>(const std::string& name, typename F::Options options,
                                    const Goals& goals = {}) {
    const bool wanted = only.empty() || std::ranges::any_of(only, [&](const std::string& part) {
                          return name.find(part) != std::string::npos;
                        });
    if (!wanted) return;
    options.capacity = n;
    Subject<F> subject(name, options, keys);
    if (churn) {
      subject.Churn(keys, absent);
    } else {
      subject.Measure(keys, absent,
                      n <= kInCache  ? goals.in_cache
                      : n >= kBeyond ? goals.beyond
                                     : std::nullopt);
    }
  };
  measure.operator()<BlockedBloomFilter>("blocked 1 %", {.fpr = 0.01}, kInsertOnly);
  measure.operator()<ScalableBloomFilter>("scalable 1 %, one layer", {.fpr = 0.01});
  measure.operator()<BlockedBloomFilter>("blocked 0.1 %", {.fpr = 0.001});
  measure.operator()<BlockedBloomFilter>("blocked 0.01 %", {.fpr = 0.0001});
  measure.operator()<BlockedQuotientFilter>("blocked quotient 0.3 %", {.fpr = 0.003}, kDeletable);
  measure.operator()<BlockedQuotientFilter>("blocked quotient 0.001 %", {.fpr = 1.2e-5});
  measure.operator()<CuckooFilter>("cuckoo 8", {.tag_bits = 8});
  measure.operator()<CuckooFilter>("cuckoo 12", {.tag_bits = 12}, kCuckoo);
  measure.operator()<CuckooFilter>("cuckoo 16", {.tag_bits = 16});
  measure.operator()<CuckooFilter>("cuckoo 13 semi-sorted", {.tag_bits = 13, .semi_sorted = true},
                                   kSemiSorted);
  measure.operator()<QuotientFilter>("quotient 1 %", {.fpr = 0.01});
  measure.operator()<DLeftCountingBloomFilter>("d-left 1 %", {.fpr = 0.01}, kDLeft);
  measure.operator()<DLeftCountingBloomFilter>("d-left 0.0001 %", {.fpr = 1e-6}, kDLeft);
  measure.operator()<BloomFilter>("bloom 1 %", {.fpr = 0.01});
#ifdef TAMIS_LIBBLOOM
  measure.operator()<LibBloom>("libbloom 1 %", {.fpr = 0.01});
#endif
  measure.operator()<BlockedSplitCountingBloomFilter>("blocked split counting 1 %", {.fpr = 0.01},
                                                      kBlockedCounting);
  measure.operator()<ProjectedCountingBloomFilter>("projected counting 1 %", {.fpr = 0.01},
                                                   kProjection);
  measure.operator()<CountingBloomFilter>("counting 1 %", {.fpr = 0.01});
  measure.operator()<DynamicCountFilter>("dynamic count 1 %", {.fpr = 0.01});
  measure.operator()<SplitCountingBloomFilter>("split counting 1 %", {.fpr = 0.01});
  measure.operator()<ScalableSplitCountingBloomFilter>("scalable split counting 1 %",
                                                       {.fpr = 0.01});
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool churn = !arguments.empty() && arguments[0] == "--churn";
  if (churn) arguments.erase(arguments.begin());
  uint64_t keys = 1'000'000;
  if (!arguments.empty()) {
    keys = std::strtoull(arguments[0].c_str(), nullptr, 10);
    arguments.erase(arguments.begin());
  }
  if (keys < 1000) {
    fmt::print(stderr, "usage: filter_benchmark [--churn] [KEYS [NAME...]]; at least 1000 keys\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each line as it comes, into a pipe too
  tamis::Run(churn, keys, arguments);
  return 0;
}
