// OrderedRounds: which sub-ranges a search in an order asks next, for how many rows, and which
// servers take part in the order.
//
// The next rows decide which servers are asked (OrderedMerge::Needed). Without a limit as many rows
// again are fetched as were given: most often the caller stops soon. Rounds of requests that
// brought no row to give make the next one larger.
//
// A server of an earlier version does not know of an order. It gives all rows of a sub-range, or it
// refuses the order of the row key, and is then asked without one.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tamis/query/index_order.h"
#include "tamis/query/ordered_merge.h"
#include "tamis/query/sub_range.h"

namespace tamis {

class OrderedRounds {
 public:
  // `at_once`: rows that the caller wants at once; 0: it is not known.
  OrderedRounds(const IndexOrder& order, uint64_t at_once)
      : by_key_(order.index == nullptr), at_once_(at_once) {}

  // The sub-ranges that are to be asked now. `given`: rows that were given out. `is_next_round`: no
  // request is under way.
  std::vector<SubRangeAt> Needed(const OrderedMerge& merge, uint64_t given, bool is_next_round);
  void RoundBegins() { ++fruitless_; }  // some of them are asked
  void RowGiven() { fruitless_ = doublings_ = 0; }
  // The rows that each of these sub-ranges is asked for.
  uint64_t rows_of_sub_range() const { return rows_of_sub_range_; }

  bool IsKnownTo(const std::string& server) const { return !refused_by_.contains(server); }
  // Notes that the server refuses the order. False: there is no order that a server refuses.
  bool NoteRefusal(const std::string& server);
  // The sub-range is asked without an order: all rows that are left of it are to be collected, from
  // its start.
  static void RestartWithoutOrder(SubRangeAt sub_range);

 private:
  uint64_t RowsOfRound(uint64_t rows, uint64_t given) const;

  const bool by_key_;
  const uint64_t at_once_;
  std::set<std::string> refused_by_;
  uint64_t rows_of_sub_range_ = 0;
  uint64_t fruitless_ = 0;  // rounds, since a row was given
  uint64_t doublings_ = 0;  // doublings of the present round, for that
};

}  // namespace tamis
