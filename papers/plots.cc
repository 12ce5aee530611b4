#include "papers/plots.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "papers/measurement.h"
#include "tamis/filter/any_filter.h"
#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

constexpr uint64_t kKeys = 40'000;
constexpr const char* kSubtitle =
    "Full filters of 40,000 keys; marks are measured, lines are formulas";

RatePoint MeasureFull(std::string type, const auto& filter, const Keys& keys, double rate) {
  const uint64_t asked = uint64_t{1} << (rate < 5e-5 ? 21 : rate < 5e-4 ? 20 : 18);
  return {std::move(type), static_cast<double>(filter.SizeBytes()) * 8 / kKeys,
          FalsePositives(filter, keys, 4001, asked).value};
}

std::vector<uint64_t> Hashes(const Keys& keys) {
  std::vector<uint64_t> hashes(kKeys);
  for (size_t i = 0; i < kKeys; ++i) hashes[i] = keys(4000, i);
  return hashes;
}

Axis RateAxis() {
  Axis axis{.title = "false-positive rate", .low = 3e-6, .high = 0.2, .logarithmic = true};
  axis.ticks = {
      {1e-5, "0.001 %"}, {1e-4, "0.01 %"}, {1e-3, "0.1 %"}, {1e-2, "1 %"}, {1e-1, "10 %"}};
  return axis;
}

Axis BitsAxis(double high, double step) {
  Axis axis{.title = "bits per key", .low = 0, .high = high};
  for (double at = 0; at <= high; at += step) {
    axis.ticks.push_back({at, std::to_string(static_cast<int>(at))});
  }
  return axis;
}

// bits(rate) at rates that divide the axis evenly.
void AddLine(const char* name, Series::Style style, size_t color, auto&& bits, Plot* plot) {
  constexpr int kPoints = 80;
  Series series{.name = name, .style = style, .color = color};
  for (int i = 0; i <= kPoints; ++i) {
    const double rate = plot->y.high * std::pow(plot->y.low * 1.0001 / plot->y.high,
                                                static_cast<double>(i) / kPoints);
    series.points.push_back({bits(rate), rate});
  }
  plot->series.push_back(std::move(series));
}

void AddMarks(const char* type, size_t color, size_t mark, const std::vector<RatePoint>& points,
              Plot* plot) {
  Series series{.name = type, .style = Series::Style::kMarks, .color = color, .mark = mark};
  for (const RatePoint& point : points) {
    if (point.type == type) series.points.push_back({point.bits_per_key, point.rate});
  }
  plot->series.push_back(std::move(series));
}

}  // namespace

std::vector<RatePoint> MeasureRates(uint64_t seed) {
  const Keys keys(seed);
  const std::vector<uint64_t> hashes = Hashes(keys);
  std::vector<RatePoint> points;
  for (const double rate : {0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00001}) {
    for (const FilterType& type : AnyFilter::Types()) {
      // A scalable one begins its next layer at half full, which chance may bring before the last
      // key.
      const bool grows = type.kind == FilterKind::kScalableSplitCountingBloom;
      const uint64_t capacity = grows ? kKeys + kKeys / 50 : kKeys;
      const auto filter = *AnyFilter::Build(type.name, {.capacity = capacity, .fpr = rate}, hashes);
      points.push_back(MeasureFull(std::string(type.name), filter, keys, rate));
    }
    // Its tags have 17 bits at most.
    auto semi_sorted = CuckooFilter::Create({.capacity = kKeys, .fpr = rate, .semi_sorted = true});
    if (!semi_sorted.ok()) continue;
    for (const uint64_t hash : hashes) (void)semi_sorted->Insert(hash);
    points.push_back(MeasureFull("cuckoo, semi-sorted", *semi_sorted, keys, rate));
  }
  return points;
}

Plot RatePlot(const std::vector<RatePoint>& points) {
  using Style = Series::Style;
  Plot plot{.title = "False-positive rate against memory: bits and fingerprints",
            .subtitle = kSubtitle,
            .x = BitsAxis(40, 5),
            .y = RateAxis()};
  AddLine(
      "least of any filter", Style::kLine, 7,
      [](double rate) { return fpr::InformationBound(1, rate); }, &plot);
  AddLine(
      "Bloom", Style::kLine, 0, [](double rate) { return fpr::BloomBits(1, rate); }, &plot);
  AddLine(
      "blocked, 8 lanes", Style::kLine, 1, [](double rate) { return fpr::SplitBlockBits(rate, 8); },
      &plot);
  AddLine(
      "blocked, 16 lanes", Style::kDashed, 1,
      [](double rate) { return fpr::SplitBlockBits(rate, 16); }, &plot);
  AddLine(
      "cuckoo, any width", Style::kLine, 2,
      [](double rate) { return fpr::CuckooBits(rate, 0.95, false); }, &plot);
  AddLine(
      "semi-sorted, any width", Style::kDashed, 2,
      [](double rate) { return fpr::CuckooBits(rate, 0.95, true); }, &plot);
  AddMarks("binary-fuse", 7, 1, points, &plot);
  AddMarks("bloom", 0, 0, points, &plot);
  AddMarks("blocked", 1, 1, points, &plot);
  AddMarks("scalable-bloom", 5, 2, points, &plot);
  AddMarks("cuckoo", 2, 3, points, &plot);
  AddMarks("cuckoo, semi-sorted", 2, 4, points, &plot);
  AddMarks("blocked-quotient", 3, 0, points, &plot);
  AddMarks("quotient", 6, 1, points, &plot);
  AddMarks("d-left", 4, 5, points, &plot);
  return plot;
}

Plot CountingRatePlot(const std::vector<RatePoint>& points) {
  using Style = Series::Style;
  Plot plot{.title = "False-positive rate against memory: counters",
            .subtitle = kSubtitle,
            .x = BitsAxis(140, 20),
            .y = RateAxis()};
  AddLine(
      "least of any filter", Style::kLine, 7,
      [](double rate) { return fpr::InformationBound(1, rate); }, &plot);
  AddLine(
      "counting, split: 4 x Bloom", Style::kLine, 0,
      [](double rate) { return 4 * fpr::BloomBits(1, rate); }, &plot);
  AddLine(
      "blocked: lanes of 16", Style::kLine, 1,
      [](double rate) { return 4 * fpr::SplitBlockBits(rate, 8, 16); }, &plot);
  AddLine(
      "projected: 5 x blocked", Style::kLine, 2,
      [](double rate) { return 5 * fpr::SplitBlockBits(rate, 8); }, &plot);
  AddMarks("counting", 0, 6, points, &plot);
  AddMarks("dynamic-count", 6, 1, points, &plot);
  AddMarks("split-counting", 5, 7, points, &plot);
  AddMarks("scalable", 4, 4, points, &plot);
  AddMarks("blocked-counting", 1, 3, points, &plot);
  AddMarks("projected", 2, 5, points, &plot);
  AddMarks("d-left", 3, 0, points, &plot);
  return plot;
}

}  // namespace tamis
