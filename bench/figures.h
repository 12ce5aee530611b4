// Figures of the times that benchmarks take.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace tamis {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The upper one of an even number. REQUIRES: there is a figure.
inline double Median(std::vector<double> figures) {
  std::ranges::sort(figures);
  return figures[figures.size() / 2];
}

}  // namespace tamis
