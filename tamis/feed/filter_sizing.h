// FilterSizing: which size and form the generations of one index filter get.
//
// The first one is made for the values expected; each later one for the distinct hashes that the
// counters in use show, whatever the number of entries, rounded up to a power of the square root of
// two. So filters have few sizes, and those of one size share a matrix at coordinators. A
// generation is counters where the server has memory for them, else bits alone (FilterBudget).
//
// Threads: exclusive access. The index and the faults outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tamis/cluster/faults.h"
#include "tamis/feed/filter_budget.h"
#include "tamis/feed/filter_generation.h"
#include "tamis/table/schema.h"

namespace tamis {

class FilterSizing {
 public:
  // Without a budget memory is not short.
  FilterSizing(const IndexSpec& index, const Faults& faults, std::shared_ptr<FilterBudget> budget)
      : index_(index), faults_(faults) {
    if (budget != nullptr) share_.emplace(std::move(budget));
  }

  // Empty counters for a generation that is to replace the published one, which may be null.
  IndexCounters NewCounters(const FilterGeneration* current) const;
  // Whether there is memory for these counters instead of what the filter takes.
  bool HasRoomFor(const IndexCounters& counters) const {
    return !share_.has_value() || share_->Fits(counters.SizeBytes(), 4);
  }

  // Whether a new generation would be bits alone instead of counters, or the other way.
  bool WantsOtherForm(const FilterGeneration& current) const;
  // Whether the generation is too small or too large, and a new one would have another geometry.
  bool WantsOtherSize(const FilterGeneration& current) const;

  // After whatever changes how much memory the generations take, which may be null.
  void Account(const FilterGeneration* current, const FilterGeneration* next);

 private:
  SplitGeometry GeometryFor(uint64_t distinct) const;
  bool HasRoomFor(SplitGeometry geometry, bool has_bits_only) const;

  const IndexSpec& index_;
  const Faults& faults_;
  std::optional<FilterBudget::Share> share_;
};

}  // namespace tamis
