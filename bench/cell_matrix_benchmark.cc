// How many regions the cells of an index exclude, and what it costs to ask for them.
//
//   cell_matrix_benchmark [REGIONS_DIVISOR]      (10: a short run with a tenth of the regions)
//
// Values do not depend on the region: each region holds 2,000 of them, drawn from one distribution.
// A range holds `width` of all values and begins and ends between two of them. Regions that hold
// none of the range's values need not be asked; the share of them that is asked is printed for
// cells per value of 4, 8 and 16. Every answer is compared with the values: no region that holds
// one of them may be missing. Where every region holds one, the share is 0.
//
// Goals, with 10,000 regions and 16 cells a value: at most 6.5 % up to a width of 2^13; 20 us a
// question at any width; 8 bits a value in the messages.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "bench/figures.h"
#include "tamis/base/coding.h"
#include "tamis/filter/cell_set.h"
#include "tamis/routing/cell_matrix.h"
#include "tamis/table/cell_map.h"

namespace tamis {
namespace {

constexpr size_t kValuesPerRegion = 2000;
constexpr int kRangesPerWidth = 200;

struct Value {
  uint64_t number;
  uint32_t region;
};

std::string Encoded(uint64_t number) {
  std::string bytes;
  PutBig64(&bytes, number);
  return bytes;
}

[[noreturn]] void Fail(const char* what) {
  fmt::print(stderr, "wrong answer: {}\n", what);
  std::exit(1);
}

std::vector<Value> MakeValues(size_t regions, const char* kind, std::mt19937_64* random) {
  std::vector<Value> values;
  std::lognormal_distribution<double> sizes(10, 2);
  for (uint32_t region = 0; region < regions; ++region) {
    for (size_t i = 0; i < kValuesPerRegion; ++i) {
      const uint64_t number =
          *kind == 'u' ? (*random)() >> 1 : static_cast<uint64_t>(sizes(*random) * 1e9);
      values.push_back({number, region});
    }
  }
  std::ranges::sort(values, {}, &Value::number);
  return values;
}

struct Measured {
  double asked_share = 0;  // the share of the regions without a hit
  double hit_share = 0;    // the share of all regions
  double nanoseconds = 0;  // the median of one question
};

Measured Ask(const CellMatrix& matrix, const CellMap& map, const std::vector<Value>& values,
             size_t regions, size_t width, std::mt19937_64* random) {
  std::vector<double> times;
  uint64_t asked = 0, hitless = 0, hits = 0;
  std::vector<uint64_t> may(matrix.columns() / 64);
  for (int i = 0; i < kRangesPerWidth; ++i) {
    const size_t first = 1 + (*random)() % (values.size() - width - 2);
    const auto between = [&](size_t at) {  // the values before and at this place
      const uint64_t low = values[at - 1].number;
      return low + 1 + (*random)() % std::max<uint64_t>(values[at].number - low, 1);
    };
    const std::string low = Encoded(between(first));
    const std::string high = Encoded(between(first + width));
    const auto begin = std::chrono::steady_clock::now();
    std::ranges::fill(may, 0);
    matrix.AddAnyIn(map.CellOf(low), map.CellOf(high), may);
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
    std::vector<bool> hit(regions);
    for (size_t at = first; at < first + width; ++at) hit[values[at].region] = true;
    for (size_t region = 0; region < regions; ++region) {
      const bool excluded = (may[region / 64] >> (region % 64) & 1) == 0;
      if (hit[region]) {
        ++hits;
        if (excluded) Fail("a region that holds a value of the range is excluded");
      } else {
        ++hitless;
        asked += excluded ? 0 : 1;
      }
    }
  }
  std::ranges::nth_element(times, times.begin() + kRangesPerWidth / 2);
  return {.asked_share =
              static_cast<double>(asked) / static_cast<double>(std::max<uint64_t>(hitless, 1)),
          .hit_share = static_cast<double>(hits) / static_cast<double>(hits + hitless),
          .nanoseconds = times[kRangesPerWidth / 2]};
}

void Run(size_t regions, const char* kind, std::mt19937_64* random) {
  const std::vector<Value> values = MakeValues(regions, kind, random);
  std::vector<std::string> sample;
  for (size_t i = 0; i < 100'000; ++i) {
    sample.push_back(Encoded(values[(*random)() % values.size()].number));
  }
  std::ranges::sort(sample);
  fmt::print("\n{} values, {} regions of {}\n", kind, regions, kValuesPerRegion);
  fmt::print("{:>11} {:>7} {:>10} {:>10} {:>9} {:>12} {:>10}\n", "cells/value", "width",
             "with hits", "asked of", "us", "wire bits", "matrix");
  fmt::print("{:>11} {:>7} {:>10} {:>10} {:>9} {:>12} {:>10}\n", "", "", "", "the others", "",
             "per value", "bits/value");
  for (const size_t density : {4, 8, 16}) {
    const CellMap map = CellMap::Fit(
        sample, {.cells = static_cast<uint32_t>(density * kValuesPerRegion), .knots = 2048});
    std::vector<CellSet> sets(regions, CellSet(map.cells()));
    for (const Value& value : values) sets[value.region].Insert(map.CellOf(Encoded(value.number)));
    CellMatrix matrix(map.cells());
    matrix.Reserve(regions);
    size_t wire_bytes = 0;
    for (uint32_t region = 0; region < regions; ++region) {
      matrix.Load(region, sets[region].words());
      uint32_t end = 0;
      wire_bytes += sets[region].Encode(0, ~size_t{0} / 8, &end).size();
    }
    const auto total = static_cast<double>(values.size());
    const double wire_bits = 8 * static_cast<double>(wire_bytes) / total;
    const double matrix_bits = 8 * static_cast<double>(matrix.SizeBytes()) / total;
    std::vector<size_t> widths;
    for (size_t width = 1; width <= 1 << 13; width *= 8) widths.push_back(width);
    widths.insert(widths.end(), {1 << 13, values.size() / 16, values.size() / 2});
    double worst_share = 0, worst_us = 0;
    for (const size_t width : widths) {
      const Measured found = Ask(matrix, map, values, regions, width, random);
      fmt::print("{:>11} {:>7} {:>9.1f}% {:>9.2f}% {:>9.2f} {:>12.2f} {:>10.1f}\n", density, width,
                 100 * found.hit_share, 100 * found.asked_share, found.nanoseconds / 1000,
                 wire_bits, matrix_bits);
      if (width <= 1 << 13) worst_share = std::max(worst_share, 100 * found.asked_share);
      worst_us = std::max(worst_us, found.nanoseconds / 1000);
    }
    const std::string cells = fmt::format("{} cells a value, {} values", density, kind);
    const bool has_goal = density == 16;
    Report({.work = "regions without a hit that a range asks, up to a width of 2^13; " + cells,
            .beside = fmt::format("all of {} regions", regions),
            .ratio = fmt::format("{:.2f} %", worst_share),
            .goal = has_goal ? "<= 6.5 %" : ""});
    Report({.work = "finding the regions of a range, slowest width; " + cells,
            .ratio = fmt::format("{:.1f} us", worst_us),
            .goal = has_goal ? "<= 20 us" : ""});
    Report({.work = "bits a value in messages; " + cells,
            .now = fmt::format("{:.1f} in the coordinator's matrix", matrix_bits),
            .ratio = fmt::format("{:.2f}", wire_bits),
            .goal = has_goal ? "<= 8" : ""});
  }
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  const int divisor = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  std::mt19937_64 random(1);
  for (const char* kind : {"uniform", "lognormal"}) {
    tamis::Run(10'000 / static_cast<size_t>(divisor), kind, &random);
  }
}
