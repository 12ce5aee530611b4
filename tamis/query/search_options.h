// SearchOptions: what a search is to find, and how.
//
// Threads: a value.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/table/predicate.h"

namespace tamis {

struct OrderTerm {
  uint32_t column = 0;  // position
  bool descending = false;

  friend bool operator==(const OrderTerm&, const OrderTerm&) = default;
};

struct SearchOptions {
  Predicate predicate = {};
  // Positions wanted; nullopt = all. Others read NULL.
  std::optional<std::vector<uint32_t>> columns = std::nullopt;
  uint64_t limit = 0;       // 0 = no limit
  uint64_t first_rows = 0;  // so many are fetched first; more follow when they are asked for
  // Rows may come as groups, where none of `columns` is a column of the key (RowStream::NextGroup).
  // kSoon: the first reply comes after few rows. kWhole: a region is counted at once, hence as of
  // one instant where it is counted in time.
  enum class Groups { kNone, kSoon, kWhole };
  Groups groups = Groups::kNone;
  // With groups, positions among `columns`: where the servers can, groups are those of the other
  // columns, with totals of these (RowGroup::totals).
  std::vector<uint32_t> totals = {};
  bool key_order = false;  // rows come in row-key order
  // Rows come in this order, NULL first; empty: in any. REQUIRES: key_order is false.
  std::vector<OrderTerm> order = {};
  std::string remark = {};  // a remark of the caller, for explain
  // The outcome in each region is noted where the table has at most so many (Explain::regions).
  size_t explained_regions = 0;
  bool use_filters = true;  // false: ask every region
  bool use_indexes = true;  // false: scan and filter
  Duration timeout = std::chrono::seconds(60);
  const std::atomic<bool>* cancelled = nullptr;  // set to true from anywhere, a signal handler too
};

}  // namespace tamis
