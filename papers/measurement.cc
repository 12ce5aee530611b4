#include "papers/measurement.h"

#include <cmath>

namespace tamis {
namespace {

constexpr double kSigmas = 1.96;  // of 95 in 100

}  // namespace

Measurement Exactly(double value) { return {value, 0, 0, 0}; }

Measurement Share(uint64_t hits, uint64_t trials) {
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(hits) / n;
  const double z = kSigmas * kSigmas / n;
  const double middle = (share + z / 2) / (1 + z);
  const double half = std::sqrt(z * (share * (1 - share) + z / 4)) / (1 + z);
  return {share, hits == 0 ? 0 : middle - half, hits == trials ? 1 : middle + half, trials};
}

Measurement Mean(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / n;
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / (n - 1);
  const double half = kSigmas * std::sqrt(variance / n);
  return {mean, mean - half, mean + half, values.size()};
}

}  // namespace tamis
