#include "tamis/feed/filter_sizing.h"

#include <algorithm>
#include <cmath>

namespace tamis {
namespace {

constexpr uint64_t kLeastCapacity = 64;  // or what is expected, where that is less

}  // namespace

IndexCounters FilterSizing::NewCounters(const FilterGeneration* current) const {
  const SplitGeometry geometry = current != nullptr
                                     ? GeometryFor(current->filter.Distinct())
                                     : SplitGeometry::For(index_.fpr, index_.expected_values);
  if (!HasRoomFor(geometry, current != nullptr && current->filter.bits_only())) {
    BitLayers bits(geometry);
    bits.set_erase_bits_for_test(faults_.erase_bits);
    return IndexCounters(std::move(bits));
  }
  ScalableSplitCountingBloomFilter counters(geometry, index_.seed);
  counters.set_erase_first_match_for_test(faults_.erase_first_match);
  return IndexCounters(std::move(counters));
}

// Hysteresis: a filter of bits alone gets counters only if they will not have to be taken away at
// once.
bool FilterSizing::HasRoomFor(SplitGeometry geometry, bool has_bits_only) const {
  return !share_.has_value() ||
         share_->Fits(IndexCounters::CounterBytes(geometry), has_bits_only ? 3 : 4);
}

bool FilterSizing::WantsOtherForm(const FilterGeneration& current) const {
  if (!share_.has_value()) return false;
  const bool bits_only = current.filter.bits_only();
  // A cheap test that nearly always decides.
  if (share_->Fits(current.filter.SizeBytes(), bits_only ? 3 : 4) != bits_only) return false;
  return HasRoomFor(GeometryFor(current.filter.Distinct()), bits_only) == bits_only;
}

bool FilterSizing::WantsOtherSize(const FilterGeneration& current) const {
  const IndexCounters& filter = current.filter;
  const bool small = filter.layers() >= 3;
  const bool large = filter.layers() == 1 && filter.Fill(0) < 0.25 &&
                     (current.counted || current.added >= filter.geometry().Capacity());
  // A new generation of the same geometry would gain nothing.
  return (small || large) && GeometryFor(filter.Distinct()) != filter.geometry();
}

void FilterSizing::Account(const FilterGeneration* current, const FilterGeneration* next) {
  if (!share_.has_value()) return;
  share_->Set((current != nullptr ? current->filter.SizeBytes() : 0) +
              (next != nullptr ? next->filter.SizeBytes() : 0));
}

SplitGeometry FilterSizing::GeometryFor(uint64_t distinct) const {
  const uint64_t least = std::clamp<uint64_t>(index_.expected_values, 1, kLeastCapacity);
  uint64_t capacity = least;
  for (int half_steps = 1; capacity < distinct && capacity < SplitGeometry::kMaxCapacity;
       ++half_steps) {
    capacity =
        static_cast<uint64_t>(std::ceil(static_cast<double>(least) * std::exp2(half_steps / 2.0)));
  }
  return SplitGeometry::For(index_.fpr, capacity);
}

}  // namespace tamis
