// Aggregate: counts, sums, least and greatest values of groups of rows, computed by the region
// servers where they can (Engine::Aggregate).
//
// Sums of int64, bool (true is 1) and decimal columns are exact. kInvalidArgument: an int64 sum
// does not fit in 64 bits (exactly then, whatever the order of the rows), or a decimal sum has more
// than a million digits. A sum of doubles is rounded at each step, in no fixed order. Other types
// have no sum. Averages follow: sum / values.
//
// Each group of a page is added once, together with the position from which the page's region
// continues; a reply that is lost or comes late is not added. In one region that answers with one
// page all is as of one instant; Explain::regions_in_parts counts the others. No instant is
// promised across regions.
//
// Threads: values.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/query/explain.h"
#include "tamis/table/predicate.h"
#include "tamis/table/row.h"

namespace tamis {

struct AggregateOptions {
  Predicate predicate = {};
  std::vector<uint32_t> by = {};      // positions; empty: all rows are one group
  std::vector<uint32_t> totals = {};  // positions
  size_t max_groups = 1'000'000;      // more are kResourceExhausted
  bool use_filters = true;            // like SearchOptions
  bool use_indexes = true;
  Duration timeout = std::chrono::seconds(60);
  const std::atomic<bool>* cancelled = nullptr;
};

struct ColumnAggregate {
  uint64_t values = 0;  // rows without NULL in the column
  Value sum = {};       // NULL: no row has a value, or the type has no sum
  Value least = {};
  Value greatest = {};
};

struct AggregateGroup {
  std::vector<Value> by;  // the values of AggregateOptions::by
  uint64_t count = 0;
  std::vector<ColumnAggregate> totals;  // one for each of AggregateOptions::totals
};

struct Aggregates {
  std::vector<AggregateGroup> groups;  // ordered by their values
  Explain explain;
};

}  // namespace tamis
