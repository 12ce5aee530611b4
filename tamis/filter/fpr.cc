#include "tamis/filter/fpr.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tamis::fpr {

using std::numbers::ln2;

namespace {

constexpr double kMostHashes = 1000;  // 1e-300: more cannot be told apart

constexpr size_t kSubtables = 4;
constexpr size_t kDLeftLoads = 32;
using DLeftState = std::array<std::array<double, kDLeftLoads + 1>, kSubtables>;

// How fast x(i, h + 1) grows for each key that comes for each bucket number.
DLeftState DLeftGrowth(const DLeftState& x) {
  DLeftState growth = {};
  for (size_t h = 0; h < kDLeftLoads; ++h) {
    for (size_t i = 0; i < kSubtables; ++i) {
      double rate = x[i][h] - x[i][h + 1];
      for (size_t other = 0; other < kSubtables; ++other) {
        if (other != i) rate *= x[other][h + (other < i)];
      }
      growth[i][h + 1] = rate;
    }
  }
  return growth;
}

DLeftState DLeftAdvance(const DLeftState& x, const DLeftState& growth, double step) {
  DLeftState next = x;
  for (size_t i = 0; i < kSubtables; ++i) {
    for (size_t h = 1; h <= kDLeftLoads; ++h) next[i][h] += step * growth[i][h];
  }
  return next;
}

}  // namespace

double InformationBound(double keys, double fpr) { return keys * std::log2(1 / fpr); }

double Bloom(double bits, double keys, double hashes) {
  return std::pow(-std::expm1(-hashes * keys / bits), hashes);
}

double BloomBits(double keys, double fpr) { return -keys * std::log(fpr) / (ln2 * ln2); }

uint32_t BloomHashes(double bits, double keys) {
  const double best = std::min(bits / keys * ln2, kMostHashes);
  const double low = std::max(1.0, std::floor(best));
  return static_cast<uint32_t>(Bloom(bits, keys, low) <= Bloom(bits, keys, low + 1) ? low
                                                                                    : low + 1);
}

double SplitBlock(double bits_per_key, uint32_t lanes, uint32_t lane_bits) {
  const double mean = static_cast<double>(lane_bits) * lanes / bits_per_key;
  if (mean > 100.0 * lane_bits) return 1;  // less than e^-100 of a lane is not set
  const auto last = static_cast<uint32_t>(mean + 12 * std::sqrt(mean) + 20);
  double sum = 0;
  for (uint32_t i = 1; i <= last; ++i) {
    const double weight = std::exp(i * std::log(mean) - mean - std::lgamma(i + 1.0));
    sum += weight * std::pow(-std::expm1(i * std::log1p(-1.0 / lane_bits)), lanes);
  }
  return sum;
}

double SplitBlockBits(double fpr, uint32_t lanes, uint32_t lane_bits) {
  double low = 0.5;
  double high = 4096;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (SplitBlock(middle, lanes, lane_bits) <= fpr ? high : low) = middle;
  }
  return high;
}

double Cuckoo(uint32_t tag_bits, double load) {
  return -std::expm1(8 * load * std::log1p(-1 / (std::exp2(tag_bits) - 1)));
}

double CuckooBits(double fpr, double load, bool semi_sorted) {
  return (std::log2(1 / fpr) + (semi_sorted ? 2 : 3)) / load;
}

double Fingerprints(double keys, double lines, uint32_t bits) {
  return -std::expm1(keys * std::log1p(-1 / (lines * std::exp2(bits))));
}

double Excess(double keys_per_line, uint32_t slots) {
  double sum = 0;
  for (uint32_t i = slots + 1; i <= slots + 200; ++i) sum += CounterTail(keys_per_line, i);
  return sum;
}

double Exceeds(double keys_per_line, uint32_t slots) {
  return CounterTail(keys_per_line, slots + 1);
}

double SplitFill(double slice_positions, double keys) {
  if (slice_positions <= 1) return keys > 0 ? 1 : 0;
  return -std::expm1(keys * std::log1p(-1 / slice_positions));
}

double Split(double slice_positions, double keys, double slices) {
  return std::pow(SplitFill(slice_positions, keys), slices);
}

double Layers(double fpr, double layers) { return -std::expm1(layers * std::log1p(-fpr)); }

double CounterTail(double mean, uint32_t j) {
  double sum = 0;
  for (uint32_t i = j + 200; i + 1 > j; --i) {
    sum += std::exp(i * std::log(mean) - mean - std::lgamma(i + 1.0));
    if (i == 0) break;
  }
  return sum;
}

double CounterTailBound(double mean, uint32_t j) {
  return std::pow(std::numbers::e * mean / j, j) / std::sqrt(2 * std::numbers::pi * j);
}

double LargestCounter(double mean, double counters) {
  double sum = 0;
  for (uint32_t j = 1; j < 200; ++j) sum += Layers(CounterTail(mean, j), counters);
  return sum;
}

std::array<double, 4> DLeftShares(double keys, double buckets_per_subtable) {
  constexpr int kSteps = 4000;
  const double step = keys / buckets_per_subtable / kSteps;
  DLeftState x = {};
  for (auto& loads : x) loads[0] = 1;
  for (int i = 0; i < kSteps; ++i) {  // the midpoint rule
    x = DLeftAdvance(x, DLeftGrowth(DLeftAdvance(x, DLeftGrowth(x), step / 2)), step);
  }
  std::array<double, 4> shares = {};
  double all = 0;
  for (size_t i = 0; i < kSubtables; ++i) {
    for (size_t h = 1; h <= kDLeftLoads; ++h) shares[i] += x[i][h];
    all += shares[i];
  }
  for (double& share : shares) share /= all;
  return shares;
}

}  // namespace tamis::fpr
