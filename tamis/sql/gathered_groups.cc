#include "tamis/sql/gathered_groups.h"

#include <algorithm>
#include <utility>

#include "tamis/query/index_order.h"

namespace tamis {

bool GatheredGroups::Add(std::string combination, RowGroup group) {
  if (const auto there = places_.find(combination); there != places_.end()) {
    groups_[there->second].count += group.count;
    return true;
  }
  if (groups_.size() >= most_combinations_ || combination.size() > kMostBytes - bytes_)
    return false;
  bytes_ += combination.size();
  places_.emplace(std::move(combination), groups_.size());
  groups_.push_back(std::move(group));
  return true;
}

void GatheredGroups::Sort(std::span<const OrderTerm> order) {
  places_.clear();
  std::ranges::sort(groups_, [&](const RowGroup& a, const RowGroup& b) {
    return ComesBefore(order, b.row, a.row);
  });
}

std::optional<RowGroup> GatheredGroups::Take() {
  if (groups_.empty()) return std::nullopt;
  std::optional<RowGroup> next(std::move(groups_.back()));
  groups_.pop_back();
  return next;
}

}  // namespace tamis
