// ParkedPolls: the polls of a feed that wait for an event, at most one of each coordinator.
//
// A poll is parked when it lacks no event. It is taken out when an event is appended that it lacks,
// when its wait is over, or when a later poll of the same coordinator replaces it.
//
// In the jar a parked poll blocks the thread of its call, so a counter of them is all that it has.
//
// Threads: exclusive access. Nothing is called back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/cluster/region_server.h"

namespace tamis {

class ParkedPolls {
 public:
  struct Poll {
    pb::PollRequest request;
    std::function<Time()> verified_until;
    Callback<pb::PollReply> done;
    Time until;                // when its wait is over
    bool crowded_out = false;  // it was not parked because too many polls were
  };
  using Polls = std::map<uint64_t, Poll>;  // by coordinator

  // Throws std::bad_alloc, and then parks nothing. REQUIRES: no poll of its coordinator is parked.
  void Park(Poll poll);

  // The Take functions move polls out as map nodes, which allocates no memory.
  // Takes the coordinator's poll; an empty node: none is parked.
  Polls::node_type Take(uint64_t coordinator) { return polls_.extract(coordinator); }
  // Takes the polls whose wait is over.
  Polls TakeDue(Time now);
  // Takes the polls that lack events. `last`: number of the last event.
  Polls TakeBehind(uint64_t last);
  Polls TakeAll() { return std::exchange(polls_, {}); }

  bool Has(uint64_t coordinator) const { return polls_.contains(coordinator); }
  // When the first wait is over; Time::max(): no poll is parked.
  Time NextEnd() const;
  bool empty() const { return polls_.empty(); }
  size_t size() const { return polls_.size(); }

 private:
  template <class Condition>
  Polls TakeIf(Condition&& condition);

  Polls polls_;
};

}  // namespace tamis
