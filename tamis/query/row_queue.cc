#include "tamis/query/row_queue.h"

#include <algorithm>
#include <utility>

namespace tamis {

void RowQueue::Begin(const Plan& plan) {
  merge_.reset();
  if (!plan.order.has_value()) return;
  const IndexOrder& order = *plan.order;
  merge_.emplace(
      schema_, OrderedMerge::Options{.terms = options_.order,
                                     .order = order,
                                     .stream = order.index == nullptr ? pb::IndexStream()
                                                                      : plan.branches[0].streams(0),
                                     .each_once = options_.limit > 0 || options_.first_rows > 0,
                                     .stop_early = context_->options.faults.stop_before_bounds});
  if (!options_.use_filters || order.index == nullptr) return;
  GlobalIndex::Wanted wanted{.low = order.first_values.low, .high = order.first_values.high};
  if (!order.descending || order.ends_with_first()) wanted.cells = order.index->cell_map.get();
  merge_->SetBounds(context_->global->Bounds(schema_->id, plan.keys, order.index->id,
                                             order.descending, context_->executor->Now(), wanted));
}

void RowQueue::SetLimit(uint64_t rows) {
  if (merge_.has_value()) merge_->SetLimit(rows);
}

void RowQueue::Add(SubRangeAt sub_range, ResultRows read, bool in_order) {
  if (merge_.has_value()) {
    merge_->AddRows(sub_range, std::move(read.rows), read.keys, in_order);
  } else {
    std::ranges::reverse(read.rows);
    sub_range->rows = std::move(read.rows);
  }
  if (sub_range->rows.empty()) {
    coverage_.Emptied(sub_range);
  } else if (!options_.key_order && !merge_.has_value()) {
    ready_.push_back(sub_range);
  }
}

std::optional<RowGroup> RowQueue::Next() {
  if (merge_.has_value()) {
    auto row = merge_->Next([this](SubRangeAt at) { coverage_.Emptied(at); });
    if (!row.has_value()) return std::nullopt;
    return RowGroup{.row = *std::move(row)};
  }
  if (options_.key_order ? coverage_.empty() : ready_.empty()) return std::nullopt;
  const SubRangeAt sub_range = options_.key_order ? coverage_.first() : ready_.front();
  if (sub_range->rows.empty()) return std::nullopt;
  RowGroup row = std::move(sub_range->rows.back());
  sub_range->rows.pop_back();
  if (sub_range->rows.empty()) {
    if (!options_.key_order) ready_.pop_front();
    coverage_.Emptied(sub_range);
  }
  return row;
}

void RowQueue::Forget(const std::string& key) {
  if (merge_.has_value()) merge_->Forget(key);
}

}  // namespace tamis
