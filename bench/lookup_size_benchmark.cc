// The cost of a lookup, from a filter that lies in the first cache to one that lies in memory:
// nanoseconds a key, asked in spans of 4096, one half of them in the filter.
//
//   lookup_size_benchmark [FILE]        writes the table to FILE as a picture, too
//
// The "floor" is a random line of as much memory, fetched ahead. Every answer counts: a key that
// was inserted and is not found ends the run.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/floor.h"
#include "papers/plot/plot.h"
#include "tamis/base/random.h"
#include "tamis/filter/blocked_bloom_filter.h"
#include "tamis/filter/blocked_quotient_filter.h"
#include "tamis/filter/blocked_split_counting_bloom_filter.h"
#include "tamis/filter/bloom_filter.h"
#include "tamis/filter/counting_bloom_filter.h"
#include "tamis/filter/cuckoo_filter.h"
#include "tamis/filter/d_left_counting_bloom_filter.h"

namespace tamis {
namespace {

constexpr size_t kBatch = 4096;
constexpr size_t kAsked = size_t{1} << 19;
constexpr uint32_t kLeastLog = 12;  // bytes, as a power of two
constexpr uint32_t kMostLog = 26;
constexpr uint32_t kStepLog = 2;
#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

// The least of three runs, in nanoseconds of one of kAsked.
double Nanoseconds(auto&& run) {
  double least = ThreadSeconds(run);
  for (int i = 1; i < 3; ++i) least = std::min(least, ThreadSeconds(run));
  return least * 1e9 / kAsked;
}

uint64_t Key(uint64_t stream, uint64_t i) { return Mix((stream << 40) + i); }

double Floor(size_t bytes) {
  const RandomLines lines(bytes / 64);
  std::vector<uint64_t> keys(kAsked + RandomLines::kAhead);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = Key(1, i);
  uint64_t read = 0;
  const double time = Nanoseconds([&] { read = lines.Read(keys); });
  if (read != kAsked) std::abort();
  return time;
}

// Every other key asked for is in the filter.
template <class Filter>
double Lookup(size_t bytes, double fpr) {
  const uint64_t capacity = std::max<uint64_t>(16, Filter::CapacityFor(bytes, fpr) * 49 / 50);
  auto filter = *Filter::Create({.capacity = capacity, .fpr = fpr});
  for (uint64_t i = 0; i < capacity; ++i) {
    if (!filter.Insert(Key(1, i))) {
      fmt::print(stderr, "a filter of {} bytes refused key {} of {}\n", bytes, i, capacity);
      std::exit(1);
    }
  }
  std::vector<uint64_t> keys(kAsked);
  for (size_t i = 0; i < kAsked; ++i) {
    keys[i] = i % 2 == 0 ? Key(1, FastRange(Key(3, i), capacity)) : Key(2, i);
  }
  uint64_t found = 0;
  const double time = Nanoseconds([&] {
    found = 0;
    for (size_t begin = 0; begin < kAsked; begin += kBatch) {
      const std::span<const uint64_t> batch(keys.data() + begin, kBatch);
      for (const uint64_t word : filter.MayContain(batch)) {
        if ((word & 0x5555555555555555u) != 0x5555555555555555u) {
          fmt::print(stderr, "a key of a filter of {} bytes was not found\n", bytes);
          std::exit(1);
        }
        found += std::popcount(word);
      }
    }
  });
  if (found < kAsked / 2) std::abort();
  return time;
}

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::string Size(size_t bytes) {
  if (bytes < size_t{1} << 20) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} MiB", bytes >> 20);
}

Plot EmptyPlot() {
  Plot plot{.title = "A lookup, from the first cache to memory",
            .subtitle = fmt::format("Spans of {}, every other key in it; {}, {}", kBatch,
                                    Processor(), kCompiler),
            .x = {.title = "size of the filter",
                  .low = 1 << kLeastLog,
                  .high = 1 << kMostLog,
                  .logarithmic = true},
            .y = {.title = "nanoseconds a key", .low = 0.5, .high = 500, .logarithmic = true}};
  for (uint32_t log = kLeastLog; log <= kMostLog; log += kStepLog) {
    plot.x.ticks.push_back({double(size_t{1} << log), Size(size_t{1} << log)});
  }
  for (const double at : {0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0}) {
    plot.y.ticks.push_back({at, fmt::format("{:g}", at)});
  }
  return plot;
}

Plot MeasureOnce() {
  Plot plot = EmptyPlot();
  const auto measure = [&](const char* name, auto&& nanoseconds) {
    Series series{.name = name,
                  .style = Series::Style::kMarkedLine,
                  .color = plot.series.size(),
                  .mark = plot.series.size()};
    for (uint32_t log = kLeastLog; log <= kMostLog; log += kStepLog) {
      const size_t bytes = size_t{1} << log;
      series.points.push_back({static_cast<double>(bytes), nanoseconds(bytes)});
    }
    plot.series.push_back(std::move(series));
  };
  const auto filter = [&]<class Filter>(const char* name, double fpr) {
    measure(name, [fpr](size_t bytes) { return Lookup<Filter>(bytes, fpr); });
  };
  filter.operator()<BloomFilter>("bloom, 1 %", 0.01);
  filter.operator()<CountingBloomFilter>("counting, 1 %", 0.01);
  filter.operator()<DLeftCountingBloomFilter>("d-left, 1 %", 0.01);
  filter.operator()<CuckooFilter>("cuckoo, 0.2 %", 0.002);
  filter.operator()<BlockedSplitCountingBloomFilter>("blocked-counting, 1 %", 0.01);
  filter.operator()<BlockedQuotientFilter>("blocked-quotient, 0.3 %", 0.003);
  filter.operator()<BlockedBloomFilter>("blocked, 1 %", 0.01);
  measure("floor: a random line", Floor);
  return plot;
}

// The least of all rounds: what else a machine does slows it down for seconds at a time.
Plot Measure() {
  Plot least = MeasureOnce();
  for (int round = 1; round < 4; ++round) {
    const Plot plot = MeasureOnce();
    for (size_t i = 0; i < plot.series.size(); ++i) {
      for (size_t j = 0; j < plot.series[i].points.size(); ++j) {
        double& y = least.series[i].points[j].y;
        y = std::min(y, plot.series[i].points[j].y);
      }
    }
  }
  return least;
}

void Print(const Plot& plot) {
  fmt::print("ns a key; {}\n{:<8}", plot.subtitle, "size");
  for (const Series& series : plot.series) fmt::print(" {:>23}", series.name);
  for (uint32_t log = kLeastLog; log <= kMostLog; log += kStepLog) {
    fmt::print("\n{:<8}", Size(size_t{1} << log));
    for (const Series& series : plot.series) {
      fmt::print(" {:>23.2f}", series.points[(log - kLeastLog) / kStepLog].y);
    }
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    fmt::print(stderr, "usage: lookup_size_benchmark [FILE.svg]\n");
    return 2;
  }
  const tamis::Plot plot = tamis::Measure();
  tamis::Print(plot);
  if (argc == 2 && !(std::ofstream(argv[1]) << tamis::ToSvg(plot) << std::flush)) {
    fmt::print(stderr, "cannot write \"{}\"\n", argv[1]);
    return 1;
  }
  return 0;
}
