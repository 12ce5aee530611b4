// RowQueue: the rows that regions have sent, until they are given out: as they came, in key order,
// or merged in the order of the plan (ordered_merge.h).
//
// The rows of a sub-range wait in it (SubRange::rows). When the last of them is given out, the
// coverage is told so that the sub-range is taken off or asked for more.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "tamis/query/coverage.h"
#include "tamis/query/ordered_merge.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/result_rows.h"
#include "tamis/query/search_options.h"

namespace tamis {

class RowQueue {
 public:
  // The options and the coverage outlive it.
  RowQueue(std::shared_ptr<QueryContext> context, SchemaPtr schema, const SearchOptions& options,
           Coverage* coverage)
      : context_(std::move(context)),
        schema_(std::move(schema)),
        options_(options),
        coverage_(*coverage) {}

  // The next rows are those of this plan. REQUIRES: no row is left.
  void Begin(const Plan& plan);
  // No more rows are taken out of an order; 0: all may be.
  void SetLimit(uint64_t rows);
  // nullptr: there is no order. It stays where it is until the next Begin.
  OrderedMerge* merge() { return merge_.has_value() ? &*merge_ : nullptr; }
  const OrderedMerge* merge() const { return merge_.has_value() ? &*merge_ : nullptr; }

  // Rows of a sub-range that has none, or the news that it has no more. `in_order`: the server knew
  // of the order.
  void Add(SubRangeAt sub_range, ResultRows read, bool in_order);
  // nullopt: none can be given out before others have come.
  std::optional<RowGroup> Next();
  // Rows in an order are given out once at the most, but the one of this key may come again.
  void Forget(const std::string& key);

 private:
  const std::shared_ptr<QueryContext> context_;
  const SchemaPtr schema_;
  const SearchOptions& options_;
  Coverage& coverage_;
  std::optional<OrderedMerge> merge_;
  // With rows; not in an order, nor in key order, where the first sub-range alone matters.
  std::deque<SubRangeAt> ready_;
};

}  // namespace tamis
