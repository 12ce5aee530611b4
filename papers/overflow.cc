// Huang, Fang and Zhang 2015: how often counters overflow, and the filter that grows.
#include "papers/overflow.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "papers/sections.h"
#include "tamis/filter/counting_bloom_filter.h"
#include "tamis/filter/fpr.h"
#include "tamis/filter/scalable_split_counting_bloom_filter.h"

namespace tamis {
namespace {

using std::numbers::ln2;
using std::numbers::pi;

// The paper's bound as its tables have it: without e.
double PrintedTail(double j) { return std::pow(ln2 / j, j) / std::sqrt(2 * pi * j); }

struct PrintedOverflow {
  uint32_t bits;
  const char* split;
  const char* plain;
};
constexpr std::array<PrintedOverflow, 5> kPrinted = {{{1, "0.03388", "0.1534"},
                                                      {2, "1.80E-4", "5.56E-3"},
                                                      {3, "4.48E-10", "7.15E-7"},
                                                      {4, "1.54E-23", "2.22E-16"},
                                                      {5, "3.89E-55", ""}}};

template <class Filter>
void Count(const Filter& filter, uint64_t positions, CounterRuns::Kind* kind) {
  uint32_t largest = 0;
  for (uint64_t i = 0; i < positions; ++i) {
    const uint32_t counter = filter.Counter(i);
    ++kind->at_least[counter];  // exactly so many, for now
    largest = std::max(largest, counter);
  }
  kind->counters += positions;
  kind->largest.push_back(largest);
}

void Accumulate(CounterRuns::Kind* kind) {
  for (size_t j = 15; j-- > 0;) kind->at_least[j] += kind->at_least[j + 1];
}

// --- counters ----------------------------------------------------------------------------------

// One of the paper's columns, beside what formulas(j) gives and what counters of that kind did.
template <class Formulas>
Table Tails(std::string title, std::vector<std::string> names, Formulas&& formulas,
            const char* PrintedOverflow::*column, const CounterRuns::Kind& kind) {
  Table table{.title = std::move(title), .what = {"bits", "j"}, .formulas = std::move(names)};
  for (const PrintedOverflow& printed : kPrinted) {
    if (*(printed.*column) == '\0') continue;
    const uint32_t j = 1U << printed.bits;
    table.rows.push_back({{std::to_string(printed.bits), std::to_string(j)},
                          printed.*column,
                          formulas(j),
                          kind.Tail(j),
                          ""});
  }
  return table;
}

Table SplitTails(const CounterRuns& runs) {
  const auto formulas = [](uint32_t j) -> std::vector<double> {
    return {PrintedTail(j), fpr::CounterTailBound(ln2, j), fpr::CounterTail(ln2, j)};
  };
  return Tails("Tables 2 and 3: a counter of a split counting filter overflows, P(c >= j)",
               {"e lost", "the paper's bound", "exact tail"}, formulas, &PrintedOverflow::split,
               runs.split);
}

Table PlainTails(const CounterRuns& runs) {
  const auto formulas = [](uint32_t j) -> std::vector<double> {
    return {j == 16 ? 0x1p-52 : NAN, fpr::CounterTail(ln2, j)};
  };
  return Tails("Table 4: a counter of a plain counting filter overflows, P(c >= j)",
               {"2^-52", "exact tail"}, formulas, &PrintedOverflow::plain, runs.plain);
}

Table AnyCounter(const CounterRuns& runs) {
  Table table{.title = "Any of the 368,640 counters of a filter reaches j, P(max c >= j)",
              .what = {"filter", "j"},
              .formulas = {"one counter", "any counter"}};
  const auto add = [&](const char* name, const CounterRuns::Kind& kind, uint32_t j,
                       const char* printed) {
    const double tail = fpr::CounterTail(ln2, j);
    table.rows.push_back({{name, std::to_string(j)},
                          printed,
                          {tail, fpr::Layers(tail, CounterRuns::kCounters)},
                          kind.LargestAtLeast(j),
                          ""});
  };
  add("split", runs.split, 4, "1.80E-4");
  add("split", runs.split, 7, "");
  add("split", runs.split, 8, "4.48E-10");
  add("split", runs.split, 9, "");
  add("plain", runs.plain, 4, "5.56E-3");
  add("plain", runs.plain, 7, "");
  add("plain", runs.plain, 8, "7.15E-7");
  add("plain", runs.plain, 9, "");
  return table;
}

Table Largest(const CounterRuns& runs) {
  const double mean = fpr::LargestCounter(ln2, CounterRuns::kCounters);
  return {.title = "The largest counter of a filter, mean",
          .what = {"filter"},
          .formulas = {"formula"},
          .rows = {{{"split"}, "", {mean}, Mean(runs.split.largest), ""},
                   {{"plain"}, "", {mean}, Mean(runs.plain.largest), ""}}};
}

// The four bits that we use, in filters that hold more than they were made for.
Table Overfilled(const Keys& keys) {
  Table table{.title = "Counters of 4 bits that stick, P(c >= 15), in a split filter overfilled",
              .what = {"keys / capacity"},
              .formulas = {"exact tail"}};
  SplitCountingBloomFilter filter({CounterRuns::kSlices, CounterRuns::kSlicePositions});
  uint64_t n = 0;
  for (const uint32_t times : {1, 2, 4, 6, 8, 12}) {
    for (; n < times * CounterRuns::kKeys; ++n) filter.Insert(keys(500, n));
    table.rows.push_back({{std::to_string(times)},
                          "",
                          {fpr::CounterTail(times * ln2, 15)},
                          Share(filter.saturated_count(), filter.geometry().positions()),
                          ""});
  }
  return table;
}

// --- layers ------------------------------------------------------------------------------------

struct Grown {
  ScalableSplitCountingBloomFilter filter;
  uint64_t keys;  // of the stream
};

// Keys until so many layers are half full; the one key that a further layer took goes again.
Grown Grow(double rate, uint32_t layers, const Keys& keys, uint64_t stream) {
  constexpr uint64_t kLayerKeys = 20000;
  ScalableSplitCountingBloomFilter filter(SplitGeometry::For(rate, kLayerKeys));
  uint64_t n = 0;
  while (filter.layers() <= layers) filter.Insert(keys(stream, n++));
  filter.Erase(keys(stream, --n));
  return {std::move(filter), n};
}

double LayerRate(const SplitGeometry& geometry) {
  return std::pow(0.5, static_cast<double>(geometry.slices));
}

Table LayerRates(const Keys& keys) {
  Table table{
      .title = "d full layers, P_d = 1 - (1 - P)^d", .what = {"P", "d"}, .formulas = {"formula"}};
  for (const uint32_t layers : {1, 2, 4, 8}) {
    const Grown grown = Grow(1e-3, layers, keys, 600 + layers);
    const double rate = fpr::Layers(LayerRate(grown.filter.geometry()), layers);
    table.rows.push_back({{"2^-10", std::to_string(layers)},
                          "",
                          {rate},
                          FalsePositives(grown.filter, keys, 620, uint64_t{1} << 22),
                          ""});
  }
  return table;
}

// The share of the keys that a layer after their own matches falsely, of d full layers.
//
// While layer c is open, every key that no full layer matches goes to it, so that its share of the
// keys is as 1 / (1 - P)^c; d - 1 - c layers follow it. These match less often than P: their keys
// are such as no earlier layer matches, and all layers have the same positions. If a half full
// layer does not match a key, a given position of the key is set there with probability (1/2 - P) /
// (1 - P), so that so much less of the later layer's keys fall on set positions of the earlier one.
double StuckShare(const SplitGeometry& geometry, uint32_t layers) {
  const double rate = LayerRate(geometry);
  const double later_fill = 1 - std::exp2(-(1 - 2 * rate) / (1 - rate));
  const double later_rate = std::pow(later_fill, geometry.slices);
  double keys = 0;
  double stuck = 0;
  for (uint32_t c = 0; c < layers; ++c) {
    const double share = std::pow(1 - rate, -double(c));
    keys += share;
    stuck += share * fpr::Layers(later_rate, layers - 1 - c);
  }
  return stuck / keys;
}

// Erases the keys in the order in which they came. When half of them have gone, every other one
// must still be found.
Table LayerErases(const Keys& keys) {
  Table table{.title = "Erasing from d full layers, P = 2^-7",
              .what = {"d", "share of the keys"},
              .formulas = {"formula"}};
  for (const uint32_t layers : {1, 2, 4, 8}) {
    const uint64_t stream = 640 + layers;
    Grown grown = Grow(0.01, layers, keys, stream);
    const double stuck = StuckShare(grown.filter.geometry(), layers);
    const uint64_t half = grown.keys / 2;
    const uint64_t stuck_before = grown.filter.stuck_count();
    uint64_t lost = 0;
    for (uint64_t i = 0; i < grown.keys; ++i) {
      if (i == half) {
        for (uint64_t j = i; j < grown.keys; ++j) lost += !grown.filter.MayContain(keys(stream, j));
      }
      grown.filter.Erase(keys(stream, i));
    }
    const std::string d = std::to_string(layers);
    table.rows.push_back({{d, "not erased, since several layers matched"},
                          "",
                          {stuck},
                          Share(grown.filter.stuck_count() - stuck_before, grown.keys),
                          ""});
    table.rows.push_back({{d, "lost"}, "", {0}, Exactly(static_cast<double>(lost)), ""});
  }
  return table;
}

}  // namespace

Measurement CounterRuns::Kind::Tail(uint32_t j) const {
  return Share(at_least[std::min<uint32_t>(j, 15)], counters);
}

Measurement CounterRuns::Kind::LargestAtLeast(uint32_t j) const {
  const auto hits = std::count_if(largest.begin(), largest.end(), [j](double c) { return c >= j; });
  return Share(static_cast<uint64_t>(hits), largest.size());
}

CounterRuns CountCounters(uint64_t seed) {
  const Keys keys(seed);
  CounterRuns runs;
  for (uint32_t run = 0; run < CounterRuns::kRuns; ++run) {
    SplitCountingBloomFilter split({CounterRuns::kSlices, CounterRuns::kSlicePositions});
    // The same number of positions and hashes, to a few in a hundred thousand.
    auto plain = *CountingBloomFilter::Create(
        {.capacity = CounterRuns::kKeys, .fpr = std::exp2(-double{CounterRuns::kSlices})});
    InsertKeys(&split, keys, 100 + run, CounterRuns::kKeys);
    InsertKeys(&plain, keys, 100 + run, CounterRuns::kKeys);
    Count(split, split.geometry().positions(), &runs.split);
    Count(plain, plain.positions(), &runs.plain);
  }
  Accumulate(&runs.split);
  Accumulate(&runs.plain);
  return runs;
}

Section Overflow(uint64_t seed, const CounterRuns& runs) {
  const Keys keys(seed);
  return {
      "Split counting Bloom filters: overflow and growth",
      {("The same paper, sections 3.3 to 4. Its conclusion is that a split counting filter (SCBF) "
        "overflows far less often than a plain one (CBF). It does not: the probability is the "
        "same."),
       fmt::format("Measured are the counters of {} filters of each kind, M = 368,640, k = 10, n "
                   "= 25,552. The counters of one filter are not quite independent (their sum is "
                   "given), which makes the intervals a little too wide.",
                   CounterRuns::kRuns),
       SplitTails(runs),
       "**The factor e was lost.** A counter is reached by each of n keys with probability 1/m, "
       "so P(c >= j) <= C(n,j) m^-j <= n^j / (j! m^j). Stirling's formula j! ~ sqrt(2 pi j) "
       "(j/e)^j makes that (e n / (j m))^j / sqrt(2 pi j), and n = m ln 2 gives (e ln 2 / j)^j / "
       "sqrt(2 pi j): so the paper derives it, and so it stands above its table. The figures of "
       "the table are (ln 2 / j)^j / sqrt(2 pi j): e^j is missing, a factor of 7.4 at j = 2 and "
       "of 8.9 million at j = 16. The exact tail is that of a Poisson variable of mean n/m = ln 2.",
       PlainTails(runs),
       "**The last line of Table 4 is no probability.** The table is 1 - e^-L (L^0/0! + ... + "
       "L^(j-1)/(j-1)!), L = ln 2, in double precision. For j = 16 the sum is 1 - 7.07e-17, which "
       "no double can tell from 1; what is left is the rounding of the terms, here 2^-52 = "
       "2.22e-16. Summed from its small end the tail has all its digits.",
       "So Tables 3 and 4 compare a bound that lacks a factor with an exact value. In a split "
       "filter n keys raise one of m counters of each slice; in a plain one k n positions are "
       "drawn from k m. Either way a counter's mean is n/m and its distribution the same up to "
       "1/m. Splitting has another advantage: a key always has k different counters, and slices "
       "can be stored, "
       "read and added separately.",
       Figure{"plots/overflow.svg",
              "How often a counter reaches j: exact tails, the paper's bound, its printed "
              "figures, and measured counters"},
       "**One counter or any.** The paper writes P(max c >= j), the probability that any counter "
       "of a filter reaches j. Its formula is that of one counter; for any of M it is 1 - (1 - "
       "P)^M.",
       AnyCounter(runs), Largest(runs),
       "**Four bits are enough** at capacity, as the paper says, though not by its figures. "
       "Beyond capacity counters stick: ours stay at 15 for ever rather than wrap round and lose "
       "a key.",
       Overfilled(keys),
       "**Growing.** The scalable filter of section 3.4 adds an identical layer when all are half "
       "full.",
       LayerRates(keys),
       "**Erasing from layers.** The paper does not say which layer an erase lowers. Lowering one "
       "that matches falsely takes counters from other keys, which are then lost. Ours lowers a "
       "layer only when it is the only one that matches; otherwise the key stays. A key never "
       "matches a layer that was full before it came, so the r = 0 .. d - 1 layers after its own "
       "decide, and the share is the mean of 1 - (1 - P')^r. P' is a little less than P, by 4 % "
       "here: the keys of a later layer are such as earlier ones do not match, so they keep away "
       "from the positions that are set there. With f' = 1 - 2^-((1 - 2 P) / (1 - P)) of these "
       "positions set, P' = f'^k. The keys were erased in the order in which they came; when half "
       "of them had gone, all others were asked for.",
       LayerErases(keys)}};
}

Plot OverflowPlot(const CounterRuns& runs) {
  Plot plot{.title = "A counter reaches j: split and plain counting filters",
            .subtitle = "Each counter is raised by n/m = ln 2 keys in the mean, at capacity",
            .x = {.title = "j (a counter of b bits overflows at j = 2^b)", .low = 1, .high = 17},
            .y = {.title = "probability", .low = 1e-24, .high = 1, .logarithmic = true}};
  for (int j = 2; j <= 16; j += 2) plot.x.ticks.push_back({double(j), std::to_string(j)});
  for (int e = -24; e <= 0; e += 4) {
    plot.y.ticks.push_back({std::pow(10, e), e == 0 ? "1" : fmt::format("1e{}", e)});
  }
  const auto line = [&](const char* name, Series::Style style, size_t color, auto&& value) {
    Series series{.name = name, .style = style, .color = color};
    for (uint32_t j = 1; j <= 16; ++j) series.points.push_back({double(j), value(j)});
    plot.series.push_back(std::move(series));
  };
  const auto tail = [](double mean) {
    return [mean](uint32_t j) { return fpr::CounterTail(mean, j); };
  };
  line("4 times as many keys", Series::Style::kLine, 5, tail(4 * ln2));
  line("twice as many keys", Series::Style::kLine, 6, tail(2 * ln2));
  line("exact tail at capacity", Series::Style::kLine, 0, tail(ln2));
  line("the paper's bound", Series::Style::kDashed, 4,
       [](uint32_t j) { return fpr::CounterTailBound(ln2, j); });
  line("the bound without e", Series::Style::kDashed, 1, PrintedTail);
  Series printed{.name = "printed, split", .style = Series::Style::kMarks, .color = 1, .mark = 3};
  for (const PrintedOverflow& row : kPrinted) {
    printed.points.push_back({double(1U << row.bits), PrintedValue(row.split)});
  }
  plot.series.push_back(std::move(printed));
  const auto measured = [&](const char* name, const CounterRuns::Kind& kind, size_t color,
                            size_t mark) {
    Series series{.name = name, .style = Series::Style::kMarks, .color = color, .mark = mark};
    for (uint32_t j = 1; j < 15; ++j) series.points.push_back({double(j), kind.Tail(j).value});
    plot.series.push_back(std::move(series));
  };
  measured("measured, split", runs.split, 2, 6);
  measured("measured, plain", runs.plain, 7, 5);
  return plot;
}

}  // namespace tamis
