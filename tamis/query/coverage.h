// Coverage: the sub-ranges of a search that are still to be covered, and what each of them waits
// for.
//
// The sub-ranges lie in key order and are disjoint. Begin makes them of all keys that can match. A
// key leaves them in two ways only: the filters exclude it (Exclude), or a region server has
// searched it and the rows found there were given out (Emptied). So the search has left out nothing
// when no sub-range is there any more.
//
// A sub-range is asked (a request has it), or it has rows that are to be given out, or it is idle.
// An idle one waits in one of five places:
//
//   idle      PlaceIdle has not looked at it since it became idle
//   stale     the region map is wrong there; TakeStale asks for a fresh one
//   asked     about the map, until MapCame
//   waiting   it failed, and may be asked again after a pause
//   due       the server that has it is known (DueSubRanges); in an order, once MakeDue names it
//
// Threads: exclusive access.
#pragma once

#include <list>
#include <map>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/query/due_sub_ranges.h"
#include "tamis/query/ordered_merge.h"
#include "tamis/query/sub_range.h"
#include "tamis/routing/key_ranges.h"

namespace tamis {

class Coverage {
 public:
  struct Options {
    int requests_in_flight = 1;  // to each server
    bool drop_failed = false;    // a fault, for tests: a sub-range that failed counts as covered
  };
  Coverage(Executor* executor, const Options& options)
      : executor_(*executor), options_(options), due_(options.requests_in_flight) {}

  // Makes the sub-ranges of these keys, in the place of all others. REQUIRES: none is asked.
  // `merge`, which may be null, is told of each sub-range that comes, changes or goes.
  void Begin(const KeyRanges& keys, OrderedMerge* merge);

  bool empty() const { return sub_ranges_.empty(); }
  SubRangeAt first() { return sub_ranges_.begin(); }  // REQUIRES: not empty
  // Whether more than one of the regions has keys of it.
  bool IsInSeveral(const std::vector<RegionInfo>& regions) const;

  // Takes excluded keys off idle sub-ranges, and returns those that were never asked. REQUIRES:
  // EnqueueAll follows.
  KeyRanges Exclude(const KeyRanges& excluded);
  // Where sub-ranges wait depends on the map and the exclusions: all idle ones are placed again.
  void EnqueueAll();

  // Puts each idle sub-range where it waits for what it needs, cut where regions end. The regions
  // stay where they are until EnqueueAll.
  void PlaceIdle(const std::vector<RegionInfo>& regions, Time now);
  // In an order: of the sub-ranges that wait, these alone are due. False: none can be asked now.
  bool MakeDue(const std::vector<SubRangeAt>& needed);
  DueSubRanges& due() { return due_; }
  // When the first pause is over; Time::max(): none is waited for.
  Time NextPauseEnd() const;

  // A request ended without searching the sub-range. It is asked again.
  void Return(SubRangeAt sub_range);
  // The same after a failure: later and later, and not before the map has been looked at there.
  void Fail(SubRangeAt sub_range, const Status& status);
  // A region has searched the sub-range up to `end` alone. The rest becomes a sub-range of its own,
  // where the map is wrong.
  void CutAt(SubRangeAt sub_range, const std::string& end);
  // The rows of the sub-range are given out, or it had none: it is taken off if it is done, else
  // asked for more.
  void Emptied(SubRangeAt sub_range);

  // The keys for which a fresh map is needed; from now on they wait for MapCame.
  std::vector<KeyRange> TakeStale();
  // The map has come, or not. REQUIRES: EnqueueAll follows.
  void MapCame(const Status& status);

  // Why something had to be asked again at last. Ok: nothing had to.
  const Status& last_failure() const { return last_failure_; }

 private:
  void Place(SubRangeAt sub_range, const std::vector<RegionInfo>& regions, Time now);
  void PlaceWithin(SubRangeAt sub_range, const RegionInfo* region, Time now);
  void NoteMoved(SubRangeAt sub_range);
  void Erase(SubRangeAt sub_range);

  Executor& executor_;
  const Options options_;
  OrderedMerge* merge_ = nullptr;
  std::list<SubRange> sub_ranges_;
  std::vector<SubRangeAt> idle_;
  std::vector<SubRangeAt> stale_;
  std::multimap<Time, SubRangeAt> waiting_;  // by the end of the pause
  DueSubRanges due_;
  Status last_failure_;
};

}  // namespace tamis
