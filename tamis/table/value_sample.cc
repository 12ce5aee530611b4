#include "tamis/table/value_sample.h"

#include <algorithm>
#include <utility>

namespace tamis {
namespace {

constexpr uint64_t kFewestCells = 64;

// The share of a region's values that is in its sample.
double ShareOf(const ValueSample& sample) {
  return static_cast<double>(sample.values.size()) / static_cast<double>(sample.distinct);
}

}  // namespace

void ValueSampler::Add(std::string value) {
  if (seen_ == 0 || value < smallest_) smallest_ = value;
  if (seen_ == 0 || value > largest_) largest_ = value;
  ++seen_;
  if (values_.size() < most_) {
    values_.push_back(std::move(value));
  } else if (const uint64_t place = random_.Uniform(seen_); place < most_) {
    values_[place] = std::move(value);
  }
}

ValueSample ValueSampler::Take() && {
  std::ranges::sort(values_);
  if (!values_.empty()) {
    values_.front() = std::move(smallest_);
    values_.back() = std::move(largest_);
  }
  return {.values = std::move(values_), .distinct = seen_};
}

CellMap UnfittedCellMap(uint32_t cells_per_value) {
  return *CellMap::Create({}, std::clamp(cells_per_value, 1u, kMaxCellsPerValue));
}

bool IsFitted(const CellMap& map) { return !map.knots().empty(); }

uint32_t CellsPerValueFor(const CellMap* map) {
  if (map == nullptr || IsFitted(*map) || map->cells() > kMaxCellsPerValue) {
    return kDefaultCellsPerValue;
  }
  return map->cells();
}

CellMap FitCellMap(const std::vector<ValueSample>& samples, size_t regions,
                   uint32_t cells_per_value) {
  // Each region counts as much as it has values: all give the share that the largest has given.
  double share = 1;
  uint64_t distinct = 0;
  for (const ValueSample& sample : samples) {
    distinct += sample.distinct;
    if (!sample.values.empty()) share = std::min(share, ShareOf(sample));
  }
  std::vector<std::string> values;
  const std::string* largest = nullptr;
  for (const ValueSample& sample : samples) {
    if (sample.values.empty()) continue;
    const auto wanted = static_cast<size_t>(share * static_cast<double>(sample.distinct) + 0.5);
    const size_t count = std::clamp<size_t>(wanted, 1, sample.values.size());
    for (size_t i = 0; i < count; ++i) {
      values.push_back(sample.values[i * sample.values.size() / count]);
    }
    if (largest == nullptr || sample.values.back() > *largest) largest = &sample.values.back();
  }
  if (largest == nullptr) return UnfittedCellMap(cells_per_value);
  values.push_back(*largest);  // so that no value that was there lies beyond the cells
  std::ranges::sort(values);
  const uint64_t cells =
      std::clamp<uint64_t>(distinct / std::max<size_t>(regions, 1) * cells_per_value, kFewestCells,
                           CellMap::kMaxCells / 2);
  return CellMap::Fit(values, {.cells = static_cast<uint32_t>(cells)});
}

}  // namespace tamis
