// EventLog: the events of a feed: numbered in one sequence without a gap, the last ones kept for
// coordinators that lack them, and the state that all of them together describe, for coordinators
// that lack more.
//
// The state is the open regions and, for each index, whether it is complete, its layers and its
// range; and the last change of each table's schema. An event of an earlier opening of a region
// says nothing about it, as at a coordinator.
//
// The jar has the same class.
//
// Threads: exclusive access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "tamis/cluster/cluster.pb.h"

namespace tamis {

class EventLog {
 public:
  struct Options {
    size_t max_events = 0;  // bounds of what is kept
    size_t max_event_bytes = 0;
    size_t reply_bytes = 0;  // bytes of events in one reply; at least one event is sent
  };
  explicit EventLog(const Options& options) : options_(options) {}

  uint64_t last() const { return last_; }         // number of the last event
  size_t bytes() const { return bytes_; }         // bytes of the events that are kept
  size_t size() const { return events_.size(); }  // how many are kept

  // Appends an event, sets its number, and returns the number. Throws std::bad_alloc, and then
  // appends nothing.
  uint64_t Append(pb::Event event);
  // Drops the events up to this number, and the oldest ones beyond the bounds.
  void ForgetUpTo(uint64_t number);

  // The schema version of a table by the last event of it; 0: there is none, or it was dropped.
  uint64_t SchemaVersion(uint32_t table_id) const;
  // A fault, for tests: a region is closed without an event.
  void CloseUntold(uint64_t region_id) { regions_.erase(region_id); }

  // Whether all events after this number are kept.
  bool KeepsAfter(uint64_t number) const { return number >= before() && number <= last_; }
  // Number of the last event that fits in a reply with those after `number`. REQUIRES:
  // KeepsAfter(number).
  uint64_t EndOfReply(uint64_t number) const;
  // Adds the events after `number` that fit. REQUIRES: KeepsAfter(number).
  void AddEvents(uint64_t number, pb::PollReply* reply) const;
  // Adds the whole state, which is small, and never cut.
  void AddState(pb::PollReply* reply) const;

 private:
  struct KeptEvent {
    pb::Event event;
    size_t bytes;
  };
  struct OpenRegion {
    pb::Event opened;
    std::map<uint32_t, pb::Event> complete;  // by index
  };

  uint64_t before() const { return last_ - events_.size(); }  // number of the event before events_
  void Remember(const pb::Event& event);

  const Options options_;
  uint64_t last_ = 0;
  std::deque<KeptEvent> events_;  // the newest has number last_
  size_t bytes_ = 0;
  std::map<uint64_t, OpenRegion> regions_;
  std::map<uint32_t, pb::Event> tables_;  // by id: the last change of the table's schema
};

}  // namespace tamis
