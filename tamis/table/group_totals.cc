#include "tamis/table/group_totals.h"

#include <utility>

#include "tamis/table/codec.h"

namespace tamis {

GroupTotals::Group* GroupTotals::Find(const Row& row) {
  std::string key;
  for (const uint32_t column : by_) AppendOrdered(row[column], &key);
  const auto [at, is_new] = by_value_.try_emplace(std::move(key), nullptr);
  if (!is_new) return at->second;
  Group& group = groups_.emplace_back();
  at->second = &group;
  group.row.resize(row.size());
  for (const uint32_t column : by_) group.row[column] = row[column];
  for (const uint32_t column : columns_) group.totals.emplace_back(schema_.columns[column].type);
  bytes_ += kOverhead + 2 * at->first.size() + row.size() * sizeof(Value);
  for (const ColumnTotals& totals : group.totals) bytes_ += totals.SizeBytes();
  return &group;
}

void GroupTotals::Add(const Row& row, uint64_t count) {
  Group* group = Find(row);
  group->count += count;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const size_t before = group->totals[i].SizeBytes();
    group->totals[i].Add(row[columns_[i]], count);
    bytes_ += group->totals[i].SizeBytes() - before;
  }
}

void GroupTotals::Add(const Row& row, uint64_t count, const std::vector<ColumnTotals>& totals) {
  Group* group = Find(row);
  group->count += count;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const size_t before = group->totals[i].SizeBytes();
    group->totals[i].Merge(totals[i]);
    bytes_ += group->totals[i].SizeBytes() - before;
  }
}

std::deque<GroupTotals::Group> GroupTotals::Take() {
  by_value_.clear();
  bytes_ = 0;
  return std::exchange(groups_, {});
}

}  // namespace tamis
