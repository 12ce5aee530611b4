// SubRange: a range of keys that a search has to cover, and how far the search has come in it.
//
// Threads: a value.
#pragma once

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/query/retry_pauses.h"
#include "tamis/query/row_group.h"

namespace tamis {

struct SubRange {
  KeyRange range;
  std::string resume;
  std::vector<RowGroup> rows;  // to be given out, the next one last
  bool done = false;
  bool asked = false;  // it is on its way to a server
  // The map was wrong there: it is not asked before the map is fresh.
  enum class Map { kGood, kStale, kAsked } map = Map::kGood;
  Time not_before{};  // when it may be asked again
  Backoff backoff = kRetryPauses;
  const RegionInfo* region = nullptr;  // that holds it, while it is due

  // For a search in an order (ordered_merge.h):
  std::vector<std::string> positions;  // positions of `rows`, the next one last
  std::string position;       // it has no other row before this one; empty: nothing is known
  bool has_answered = false;  // some of its rows have come, or none
  bool in_order = false;      // `resume` counts in the order
  // Rows of a server that does not know of orders, until all have come.
  std::vector<std::pair<std::string, Row>> collected;

  bool IsIdle() const { return !done && !asked && rows.empty(); }
};

// Sub-ranges stay where they are while others come and go.
using SubRangeAt = std::list<SubRange>::iterator;

}  // namespace tamis
