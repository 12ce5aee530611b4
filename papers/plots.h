// Plots of what the filters of this library need: rates against memory.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/plot/plot.h"

namespace tamis {

// A filter as it was measured when full.
struct RatePoint {
  std::string type;  // as the command names it
  double bits_per_key;
  double rate;
};

// Every type at the rates it is made for, from 10 % to 0.001 %.
std::vector<RatePoint> MeasureRates(uint64_t seed);

// The types that keep a bit or a fingerprint of a key, and those that keep counters.
Plot RatePlot(const std::vector<RatePoint>& points);
Plot CountingRatePlot(const std::vector<RatePoint>& points);

}  // namespace tamis
