// What each filter costs: bits a key, measured false-positive rate, and the time of each operation
// as a multiple of the floor: reading one random cache line of the same memory, fetched ahead.
//
//   filter_benchmark [KEYS [NAME...]]    default 1,000,000, in cache; 50,000,000 is far out of it
//
// One run prints one table. Every answer counts: a key that was inserted and is not found ends the
// run. The times are of this thread's processor; where other work shares its caches the floor rises
// with everything else, which the multiples take out for the most part.
#ifdef TAMIS_LIBBLOOM
#include <bloom.h>
#endif
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

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

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::vector<uint64_t> Keys(uint64_t stream, uint64_t n) {
  std::vector<uint64_t> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = Mix((stream << 40) + i + 1);
  return keys;
}

// Nanoseconds for one random line of `bytes` bytes.
double Floor(size_t bytes, const std::vector<uint64_t>& keys) {
  const RandomLines lines(bytes / 64 + 1);
  uint64_t read = 0;
  std::vector<double> times;
  for (int run = 0; run < 3; ++run) {
    times.push_back(ThreadSeconds([&] { read += lines.Read(keys); }));
  }
  if (read != 3 * (keys.size() - RandomLines::kAhead)) std::abort();
  return Median(times) * 1e9 / static_cast<double>(keys.size());
}

struct Line {
  std::string insert = "-", hit, hit_bulk = "-", miss, miss_bulk = "-", erase = "-";
};

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
  size_t SizeBytes() const { return static_cast<size_t>(bloom_->bytes); }

 private:
  std::shared_ptr<bloom> bloom_;
};
#endif

template <class F>
void Measure(const std::string& name, const typename F::Options& options,
             const std::vector<uint64_t>& keys, const std::vector<uint64_t>& absent) {
  auto filter = *F::Create(options);
  const auto n = static_cast<double>(keys.size());
  const double floor = Floor(filter.SizeBytes(), keys);
  const auto per_key = [n, floor](double seconds) {
    return fmt::format("{:.2f}", seconds * 1e9 / n / floor);
  };
  Line line;

  line.insert = per_key(ThreadSeconds([&] {
    for (const uint64_t key : keys) (void)filter.Insert(key);
  }));
  std::string insert_bulk = "-";
  if constexpr (requires { filter.Insert(std::span<const uint64_t>()); }) {
    filter.Clear();
    insert_bulk = per_key(ThreadSeconds([&] {
      for (size_t i = 0; i < keys.size(); i += kBatch) {
        (void)filter.Insert(
            std::span<const uint64_t>(keys).subspan(i, std::min(kBatch, keys.size() - i)));
      }
    }));
  }

  const auto plain = [&](const std::vector<uint64_t>& asked, uint64_t* found) {
    std::vector<double> times;
    for (int run = 0; run < 3; ++run) {
      *found = 0;
      times.push_back(ThreadSeconds([&] {
        for (const uint64_t key : asked) *found += filter.MayContain(key);
      }));
    }
    return Median(times);
  };
  [[maybe_unused]] const auto bulk = [&](const std::vector<uint64_t>& asked, uint64_t* found) {
    std::vector<double> times;
    for (int run = 0; run < 3; ++run) {
      *found = 0;
      times.push_back(ThreadSeconds([&] {
        for (size_t i = 0; i < asked.size(); i += kBatch) {
          const auto batch =
              std::span<const uint64_t>(asked).subspan(i, std::min(kBatch, asked.size() - i));
          if constexpr (requires { filter.MayContain(batch); }) {
            for (const uint64_t word : filter.MayContain(batch)) *found += std::popcount(word);
          }
        }
      }));
    }
    return Median(times);
  };
  uint64_t found = 0;
  uint64_t found_bulk = 0;
  constexpr bool kHasBulk = requires { filter.MayContain(std::span<const uint64_t>()); };
  line.hit = per_key(plain(keys, &found));
  if constexpr (kHasBulk) {
    line.hit_bulk = per_key(bulk(keys, &found_bulk));
  } else {
    found_bulk = found;
  }
  if (found != keys.size() || found_bulk != keys.size()) {
    fmt::print(stderr, "{}: {} of {} keys were found\n", name, found, keys.size());
    std::exit(1);
  }
  line.miss = per_key(plain(absent, &found));
  if constexpr (kHasBulk) {
    line.miss_bulk = per_key(bulk(absent, &found_bulk));
  } else {
    found_bulk = found;
  }
  if (found != found_bulk) {
    fmt::print(stderr, "{}: plain and bulk lookups differ\n", name);
    std::exit(1);
  }
  const double fpr = static_cast<double>(found) / n;
  const double bits = static_cast<double>(filter.SizeBytes()) * 8 / n;
  std::string erase_bulk = "-";
  if constexpr (requires { filter.Erase(std::span<const uint64_t>()); }) {
    F copy = filter;
    erase_bulk = per_key(ThreadSeconds([&] {
      for (size_t i = 0; i < keys.size(); i += kBatch) {
        (void)copy.Erase(
            std::span<const uint64_t>(keys).subspan(i, std::min(kBatch, keys.size() - i)));
      }
    }));
    if (copy.Count() != 0) std::abort();
  }
  if constexpr (requires { filter.Erase(uint64_t{}); }) {
    line.erase = per_key(ThreadSeconds([&] {
      for (const uint64_t key : keys) (void)filter.Erase(key);
    }));
  }
  fmt::print(
      "{:<28} {:>6.2f} {:>8.4f} {:>6.2f} | {:>6.1f} | {:>6} {:>6} | {:>6} {:>6} | {:>6} "
      "{:>6} | {:>6} {:>6}\n",
      name, bits, fpr * 100, bits / std::log2(1 / fpr), floor, line.insert, insert_bulk, line.hit,
      line.hit_bulk, line.miss, line.miss_bulk, line.erase, erase_bulk);
}

// Those filters whose names contain one of `only`; all when there is none.
void Run(uint64_t n, const std::vector<std::string>& only) {
  const std::vector<uint64_t> keys = Keys(1, n);
  const std::vector<uint64_t> absent = Keys(2, n);
  fmt::print("{} keys; floor in ns, operations in floors; \"bulk\" = spans of {}\n", n, kBatch);
  fmt::print(
      "{:<28} {:>6} {:>8} {:>6} | {:>6} | {:>6} {:>6} | {:>6} {:>6} | {:>6} {:>6} | {:>6} "
      "{:>6}\n",
      "filter", "b/key", "fpr %", "/bound", "floor", "insert", "bulk", "hit", "bulk", "miss",
      "bulk", "erase", "bulk");
  const auto wanted = [&](const std::string& name) {
    return only.empty() || std::ranges::any_of(only, [&](const std::string& part) {
             return name.find(part) != std::string::npos;
           });
  };
  const auto measure = [&]<class F>(const std::string& name, typename F::Options options) {
    options.capacity = n;
    if (wanted(name)) Measure<F>(name, options, keys, absent);
  };
  measure.operator()<BlockedBloomFilter>("blocked 1 %", {.fpr = 0.01});
  measure.operator()<ScalableBloomFilter>("scalable 1 %, one layer", {.fpr = 0.01});
  measure.operator()<BlockedBloomFilter>("blocked 0.1 %", {.fpr = 0.001});
  measure.operator()<BlockedBloomFilter>("blocked 0.01 %", {.fpr = 0.0001});
  measure.operator()<BlockedQuotientFilter>("blocked quotient 0.3 %", {.fpr = 0.003});
  measure.operator()<BlockedQuotientFilter>("blocked quotient 0.001 %", {.fpr = 1.2e-5});
  measure.operator()<CuckooFilter>("cuckoo 8", {.tag_bits = 8});
  measure.operator()<CuckooFilter>("cuckoo 12", {.tag_bits = 12});
  measure.operator()<CuckooFilter>("cuckoo 16", {.tag_bits = 16});
  measure.operator()<CuckooFilter>("cuckoo 13 semi-sorted", {.tag_bits = 13, .semi_sorted = true});
  measure.operator()<QuotientFilter>("quotient 1 %", {.fpr = 0.01});
  measure.operator()<DLeftCountingBloomFilter>("d-left 1 %", {.fpr = 0.01});
  measure.operator()<DLeftCountingBloomFilter>("d-left 0.0001 %", {.fpr = 1e-6});
  measure.operator()<BloomFilter>("bloom 1 %", {.fpr = 0.01});
#ifdef TAMIS_LIBBLOOM
  measure.operator()<LibBloom>("libbloom 1 %", {.fpr = 0.01});
#endif
  measure.operator()<BlockedSplitCountingBloomFilter>("blocked split counting 1 %", {.fpr = 0.01});
  measure.operator()<ProjectedCountingBloomFilter>("projected counting 1 %", {.fpr = 0.01});
  measure.operator()<CountingBloomFilter>("counting 1 %", {.fpr = 0.01});
  measure.operator()<DynamicCountFilter>("dynamic count 1 %", {.fpr = 0.01});
  measure.operator()<SplitCountingBloomFilter>("split counting 1 %", {.fpr = 0.01});
  measure.operator()<ScalableSplitCountingBloomFilter>("scalable split counting 1 %",
                                                       {.fpr = 0.01});
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  const uint64_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  if (keys < 1000) {
    fmt::print(stderr, "usage: filter_benchmark [KEYS [NAME...]]; at least 1000 keys\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each line as it comes, into a pipe too
  tamis::Run(keys, {argv + std::min(argc, 2), argv + argc});
  return 0;
}
