// Huang, Fang and Zhang 2015: the sizes of split counting Bloom filters.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <numbers>

#include "papers/sections.h"
#include "tamis/filter/fpr.h"
#include "tamis/filter/split_counting_bloom_filter.h"

namespace tamis {
namespace {

using std::numbers::ln2;

constexpr double kPositions = 45 * 1024 * 8;  // the paper's M = 45 KB, in bits

struct PrintedSizes {
  const char* percent;
  double rate;
  const char* slices;
  const char* slice_positions;
  const char* keys;
  uint64_t asked;  // by us
};

constexpr std::array<PrintedSizes, 4> kPrinted = {{
    {"0.1 %", 1e-3, "10", "36864", "25639", uint64_t{1} << 21},
    {"0.01 %", 1e-4, "14", "26331", "19229", uint64_t{1} << 23},
    {"0.001 %", 1e-5, "17", "21684", "15383", uint64_t{1} << 24},
    {"0.0001 %", 1e-6, "20", "18432", "12819", uint64_t{1} << 25},
}};

// Keys until half of the positions are in use.
uint64_t KeysToHalf(const SplitGeometry& geometry, const Keys& keys) {
  SplitCountingBloomFilter filter(geometry);
  uint64_t n = 0;
  while (!filter.IsHalfFull()) filter.Insert(keys(0, n++));
  return n;
}

void AddRows(const PrintedSizes& printed, const Keys& keys, Table* table) {
  const double exact_slices = std::log2(1 / printed.rate);
  const double slices = std::ceil(exact_slices);
  const double slice_positions = std::floor(kPositions / slices);
  const double printed_keys = PrintedValue(printed.keys);
  const double half_full = slice_positions * ln2;
  const auto made = SplitGeometry::For(printed.rate, static_cast<uint64_t>(half_full));
  const SplitGeometry geometry{static_cast<uint32_t>(slices),
                               static_cast<uint32_t>(slice_positions)};
  SplitCountingBloomFilter filter(geometry);
  InsertKeys(&filter, keys, 1, static_cast<uint64_t>(printed_keys));

  const auto add = [&](const char* quantity, const char* print, std::vector<double> formulas,
                       const Measurement& measured) {
    table->rows.push_back({{printed.percent, quantity}, print, std::move(formulas), measured, ""});
  };
  add("k", printed.slices, {exact_slices, slices}, Exactly(made.slices));
  add("m", printed.slice_positions, {kPositions / exact_slices, slice_positions},
      Exactly(made.slice_positions));
  add("n at half full", printed.keys, {kPositions * ln2 * ln2 / -std::log(printed.rate), half_full},
      Exactly(static_cast<double>(KeysToHalf(geometry, keys))));
  add("P at the printed k, m, n", printed.percent,
      {NAN, fpr::Split(slice_positions, printed_keys, slices)},
      FalsePositives(filter, keys, 2, printed.asked));
}

}  // namespace

Section SplitCountingSizes(uint64_t seed) {
  const Keys keys(seed);
  Table table{.title = "Table 1: k slices of m positions for n keys, M = 45 KB",
              .what = {"P", "quantity"},
              .formulas = {"k not rounded", "k rounded up"},
              .numbers = Table::Numbers::kCounts};
  for (const PrintedSizes& printed : kPrinted) AddRows(printed, keys, &table);
  return {
      "Split counting Bloom filters: sizes",
      {"C. Huang, X. Fang, C. Zhang: *Split Counting Bloom Filter and its Application in Hbase "
       "Secondary Index*, 2015. M counters are cut into k slices of m = M/k, a key raises one "
       "counter in each. After n keys a share f = 1 - (1 - 1/m)^n of the counters is above 0, and "
       "the false-positive rate is P = f^k. M is least where f = 1/2, hence k = log2(1/P) and n = "
       "m ln 2 = M (ln 2)^2 / ln(1/P).",
       "M = 45 KB is read as 45 x 1024 x 8 = 368,640 positions: the memory of the counters' bits, "
       "not of the counters, which take four times as much. Measured are: k and m that our class "
       "chooses for P and the n of the last column; the keys that fill half of the printed k x m "
       "positions; the rate of the printed k, m and n.",
       std::move(table),
       "The table takes k and m from a whole number of slices, but n from the formula before "
       "rounding. Where log2(1/P) is far from whole (13.3 -> 14), the printed n fills more than "
       "half of each slice (51.8 %); P holds all the same, since it hardly changes near its "
       "optimum. The rule that a new layer is begun at half full, section 3.4 of the paper, "
       "begins one earlier: after m ln 2 keys."}};
}

}  // namespace tamis
