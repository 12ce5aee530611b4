#include "tamis/query/request_writer.h"

#include <utility>

#include "tamis/cluster/trace.h"

namespace tamis {

void RequestWriter::Begin(const Plan& plan, std::vector<uint32_t> columns) {
  plan_ = &plan;
  columns_ = std::move(columns);
}

ServerRequest RequestWriter::Write(DueSubRanges::Server* server,
                                   const std::vector<SubRangeAt>& sub_ranges,
                                   const Terms& terms) const {
  ServerRequest request{.server = server->name,
                        .due = server,
                        .message = std::make_shared<pb::SearchRequest>(),
                        .parts = {},
                        .sent = terms.sent,
                        .deadline = terms.sent + terms.timeout};
  pb::SearchRequest& message = *request.message;
  for (const SubRangeAt sub_range : sub_ranges) {
    const RegionInfo& region = *sub_range->region;
    pb::SearchRange* range = message.add_ranges();
    range->set_region_id(region.id.number());
    range->set_epoch(region.epoch);
    range->set_start(sub_range->range.start);
    range->set_end(sub_range->range.end);
    range->set_resume(sub_range->resume);
    request.parts.push_back({sub_range, region.id.number(), region.start});
  }
  message.set_table_id(schema_->id);
  message.set_schema_version(schema_->version);
  if (terms.in_order) {
    const IndexSpec* index = plan_->order->index;
    message.mutable_order()->set_index_id(index == nullptr ? 0 : index->id);
    message.mutable_order()->set_descending(plan_->order->descending);
  }
  message.set_limit(terms.limit);
  message.set_groups(terms.groups);
  if (terms.groups) {
    for (const uint32_t column : options_.totals) message.add_totals(schema_->columns[column].id);
  }
  message.set_timeout_ns(static_cast<uint64_t>(terms.timeout.count()));
  SetTrace(trace_, &message);
  for (const pb::Branch& branch : plan_->branches) *message.add_branches() = branch;
  for (const uint32_t column : columns_) message.add_columns(schema_->columns[column].id);
  return request;
}

}  // namespace tamis
