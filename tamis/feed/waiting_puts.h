// WaitingPuts: the puts that wait until coordinators have applied events.
//
// The jar has a class of this name whose puts block their threads.
//
// Threads: exclusive access. Nothing is called back but by Over::Call, which needs no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "tamis/base/executor.h"
#include "tamis/cluster/region_server.h"

namespace tamis {

class WaitingPuts {
 public:
  struct Put {
    Time not_before;
    Time deadline;
    DoneCallback done;
  };
  using Puts = std::multimap<uint64_t, Put>;  // by the event number that they wait for

  // Puts whose wait is over. They are moved here as map nodes, which allocates no memory.
  struct Over {
    Puts acknowledged;
    Puts late;

    void Call();
  };

  void Add(uint64_t sequence, Put put) { puts_.emplace(sequence, std::move(put)); }
  // Takes out those whose events coordinators have applied up to `floor`, if the time for them has
  // come, and those whose deadline is over.
  void Collect(uint64_t floor, Time now, Over* over);
  // The earliest time at which a wait may end without an event; Time::max(): there is none.
  Time NextEnd(Time now) const;

  bool empty() const { return puts_.empty(); }
  size_t size() const { return puts_.size(); }
  Puts TakeAll() { return std::exchange(puts_, {}); }

 private:
  Puts puts_;
};

}  // namespace tamis
