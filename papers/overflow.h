// CounterRuns: how high the counters of split and of plain counting filters rise, counted in many
// filters that are as full as they are made for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "papers/document.h"
#include "papers/plot/plot.h"

namespace tamis {

struct CounterRuns {
  static constexpr uint32_t kRuns = 200;
  static constexpr uint32_t kSlices = 10;
  static constexpr uint32_t kSlicePositions = 36864;
  static constexpr double kCounters = double{kSlices} * kSlicePositions;
  static constexpr uint64_t kKeys = 25552;  // m ln 2

  // Sums over the filters of one kind, all runs together.
  struct Kind {
    uint64_t counters = 0;
    std::array<uint64_t, 16> at_least = {};  // [j]: counters of j or more
    std::vector<double> largest;             // of each run

    Measurement Tail(uint32_t j) const;  // j > 15: as for 15, which stands for more too
    Measurement LargestAtLeast(uint32_t j) const;
  };

  Kind split;
  Kind plain;
};

CounterRuns CountCounters(uint64_t seed);
Plot OverflowPlot(const CounterRuns& runs);

}  // namespace tamis
