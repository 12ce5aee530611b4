// Search: one search on its way: its plan, and its rows as the caller wants them.
//
// A FanOut asks the regions for the rows of the plan. The search turns them into the rows that were
// asked for:
//
//   * in an order by a sparse index, the rows with NULL follow by a plan of their own
//   * where no index gives the order, all rows are fetched and sorted here
//   * for few rows in an order, entries are found first, and then the rows of these (first_rows.h)
//
// Threads: exclusive access.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tamis/query/coordinator.h"
#include "tamis/query/explain.h"
#include "tamis/query/fan_out.h"
#include "tamis/query/first_rows.h"
#include "tamis/query/plan.h"
#include "tamis/query/query_context.h"
#include "tamis/query/search_account.h"
#include "tamis/query/search_options.h"
#include "tamis/table/row.h"

namespace tamis {

class Search final : public FoundRows {
 public:
  // Rows with other keys than `only` do not count.
  Search(std::shared_ptr<QueryContext> context, SchemaPtr schema, SearchOptions options,
         KeyRanges only = KeyRanges::All());

  // An exception on the way ends the search with its status.
  Result<std::optional<RowGroup>> Next() override;
  void StopGrouping() override;
  // After an early end: the work done so far.
  const Explain& explain() override {
    Conclude();
    return account_.explain;
  }

 private:
  Result<std::optional<RowGroup>> NextRow();
  Result<std::optional<RowGroup>> NextFound();   // rows in the order of the fan-out
  Result<std::optional<RowGroup>> NextSorted();  // sorts all rows
  Result<std::optional<RowGroup>> NextFirst();   // rows of entries that were found
  Status ReadRowsOf(const std::vector<Row>& entries);
  Status Begin();
  void BeginPlan(const Predicate& predicate, const std::vector<OrderTerm>& order);
  // The rows with NULL, which follow in an order by a sparse index. False: there is nothing more.
  bool BeginNulls();
  void SetWanted();
  uint64_t limit() const { return sorts_ || first_.has_value() ? 0 : options_.limit; }
  uint64_t at_once() const { return options_.limit > 0 ? options_.limit : options_.first_rows; }
  bool IsShown(uint32_t column) const;   // the caller wants its value
  bool IsWanted(uint32_t column) const;  // by the caller, or for the order
  Row ShownOf(Row row) const;            // with NULL where the caller wants no value
  void Conclude();                       // walks over all regions

  const std::shared_ptr<QueryContext> context_;
  const SchemaPtr schema_;
  const SearchOptions options_;
  const KeyRanges only_;
  bool grouping_ = false;  // rows may come as groups
  Plan plan_;
  SearchAccount account_;
  FanOut fan_out_;
  Time deadline_{};
  bool begun_ = false;
  std::optional<Status> ended_;             // ok: the end
  bool nulls_follow_ = false;               // rows with NULL are still to come
  bool sorts_ = false;                      // no index gives the order: all rows are sorted here
  std::optional<std::vector<Row>> sorted_;  // the next one last
  std::optional<FirstRows> first_;          // rows are found as entries and read afterwards
  uint64_t given_ = 0;                      // by NextFound, or sorted
};

}  // namespace tamis
