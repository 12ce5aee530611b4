#include "tamis/query/ordered_rounds.h"

#include <algorithm>
#include <utility>

namespace tamis {

std::vector<SubRangeAt> OrderedRounds::Needed(const OrderedMerge& merge, uint64_t given,
                                              bool is_next_round) {
  constexpr uint64_t kMostDoublings = 12;
  constexpr uint64_t kLeastRows = 4;  // rows of a sub-range, in one reply
  const uint64_t rows = at_once_ > given ? at_once_ - given : std::max<uint64_t>(1, given);
  if (is_next_round) doublings_ = std::min(fruitless_, kMostDoublings);
  std::vector<SubRangeAt> needed = merge.Needed(RowsOfRound(rows, given) << doublings_);
  if (needed.empty()) return needed;
  const uint64_t share = 2 * ((rows + needed.size() - 1) / needed.size());
  rows_of_sub_range_ = std::min(rows, std::max(kLeastRows, share));
  return needed;
}

// How many rows the sub-ranges that are asked at once should have, if each has one. In reverse key
// order all rows of a sub-range come before those of the next: one is asked, and some more once
// many rows were wanted.
uint64_t OrderedRounds::RowsOfRound(uint64_t rows, uint64_t given) const {
  constexpr uint64_t kRowsOfSubRange = 1000;
  constexpr uint64_t kMostSubRanges = 8;
  if (!by_key_) return rows;
  if (at_once_ > 0) return 1;
  return std::clamp<uint64_t>(given / kRowsOfSubRange, 1, kMostSubRanges);
}

// One that does not know the order of an index gives all rows.
bool OrderedRounds::NoteRefusal(const std::string& server) {
  if (!by_key_) return false;
  refused_by_.insert(server);
  return true;
}

void OrderedRounds::RestartWithoutOrder(SubRangeAt sub_range) {
  if (!std::exchange(sub_range->in_order, false)) return;
  sub_range->resume.clear();
  // Rows from the last one that came on are done.
  const std::string& done = sub_range->position;
  std::string& end = sub_range->range.end;
  if (!done.empty() && (end.empty() || done < end)) end = std::max(done, sub_range->range.start);
}

}  // namespace tamis
