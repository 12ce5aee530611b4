// FilterFeed: the region server's end of routing. It tells coordinators what changed in the
// filters, grants them leases, and knows when a put may be acknowledged.
//
// Everything that a coordinator must know is an event, numbered in one sequence for the whole life
// of the server process (its start code names that life). A coordinator says with each poll up to
// which number it has applied everything; the answer carries what follows, and a lease. While the
// lease lives, the server acknowledges no put whose events that coordinator has not applied, and so
// the coordinator may trust its copy: the lease covers the regions of the copy, no others, which is
// why closing a region is an event like any other.
//
// Leases are counted by the server from when it answers and by the coordinator from when it asked,
// and never reach beyond what is left of the server's last proof that it owns its regions. A
// coordinator that polls but does not apply is granted none, so that it cannot hold puts for ever.
//
// Events are kept for coordinators that have been heard of lately, until all of those have applied
// them, and within bounds; who lags more gets the whole state. A reply whose events would be too
// many bytes is cut: it grants no lease, since puts that wait for later events may have been
// acknowledged without this coordinator, and carries no bits that are younger than its events. The
// whole state, which is small, is never cut. Bits that do not fit come in parts.
//
// Threads: safe. Callbacks run on the executor or on the caller's thread, never under a lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/cluster/faults.h"
#include "tamis/cluster/region_server.h"

namespace tamis {

class FilterFeed : public std::enable_shared_from_this<FilterFeed> {
 public:
  struct Options {
    Duration lease = std::chrono::seconds(1);
    // Added to the server's count of a lease, for clocks that run at different rates.
    Duration lease_margin = std::chrono::milliseconds(10);
    // Kept for coordinators that lag; who lags more gets it all anew.
    size_t max_events = 1 << 16;
    size_t max_event_bytes = 8 << 20;
    Duration silence = std::chrono::seconds(10);  // for who was not heard so long nothing is kept
    size_t max_coordinators = 16;                 // leased at one time; the others ask everyone
    size_t max_listeners = 64;                    // for whom events are kept, leased or not
    size_t max_waiting = 10'000;                  // puts; see Crowded
    size_t max_parked =
        64;  // polls; a further one is answered at once, and told when to come again
    Duration next_poll = std::chrono::milliseconds(50);
    size_t reply_bytes = 4 << 20;       // of events in one reply, at the least one event
    size_t projection_bytes = 4 << 20;  // of bits in one reply, at the least one word
    // A thread that begins to wait for coordinators answers their parked polls itself: in one
    // process the news is applied and acknowledged before it would have to sleep. Else a task does.
    bool answer_inline = false;
    Faults faults;
  };

  // At most so many bytes of the bits of a column as they are (IndexFilter::Project), or nothing
  // when the region does not have them (any more).
  using ProjectionSource =
      std::function<std::optional<pb::Projection>(const pb::ColumnId&, size_t max_bytes)>;

  FilterFeed(Executor* executor, std::string server, uint64_t start_code, Options options);
  void SetProjectionSource(ProjectionSource source);

  uint64_t start_code() const { return start_code_; }

  // Appends an event and returns its number, or throws std::bad_alloc and appends nothing. The
  // number is set here. News of entries (FLIPS,
  // LAYER_ADDED, RANGE_WIDENED) wakes parked polls only once somebody waits for it.
  uint64_t Append(pb::Event event);

  // Answers a poll: at once when there is something to say, else when there is or the wait is over.
  // `verified_until` tells how long the server's last proof of ownership is good.
  void Poll(const pb::PollRequest& request, std::function<Time()> verified_until,
            Callback<pb::PollReply> done);

  // A schema has changed, or the table was dropped (version 0): appends that unless it was told.
  void TellTable(uint32_t table_id, uint64_t schema_version);

  // Not under a lock that an answer of a poll could want. Calls done once every coordinator with a
  // live lease has applied event number `sequence`, and it is `not_before`; kDeadlineExceeded at
  // the deadline.
  void WaitAcknowledged(uint64_t sequence, Time not_before, Time deadline, DoneCallback done);

  // True while so many puts wait that a further one should be refused before it does anything.
  bool Crowded() const;

  // The number up to which no live lease holds anything back.
  uint64_t AcknowledgedFloor() const;

  uint64_t Last() const;  // number of the last event

  size_t EventBytes() const;  // of the events that are kept
  size_t EventCount() const;

  // A coordinator that polls.
  struct Follower {
    uint64_t coordinator = 0;
    uint64_t behind = 0;  // events that it has not acknowledged
    Duration lease_left{};
  };
  std::vector<Follower> Followers() const;

  // The server dies: polls and waits that are under way are dropped unanswered, later ones refused.
  void Abandon();

 private:
  struct Coordinator {
    uint64_t acked = 0;
    Time lease_until{};
    Time heard_at{};
    // The oldest answer that is not applied yet: its last number and when it was sent.
    uint64_t sent_to = 0;
    Time sent_at{};
  };
  struct ParkedPoll {
    pb::PollRequest request;
    std::function<Time()> verified_until;
    Callback<pb::PollReply> done;
    Time until;
    bool crowded_out = false;  // it would have been parked
  };
  struct Waiter {
    Time not_before;
    Time deadline;
    DoneCallback done;
  };
  // Waiters that are over, to be called without the lock. They are moved by nodes, which takes no
  // memory.
  struct Over {
    std::multimap<uint64_t, Waiter> acknowledged;
    std::multimap<uint64_t, Waiter> late;

    void Call();
  };

  uint64_t AppendLocked(pb::Event event);

  struct KeptEvent {
    pb::Event event;
    size_t bytes;
  };

  void Answer(const ParkedPoll& poll) noexcept;
  void AnswerOrThrow(const ParkedPoll& poll);
  void AnswerWithBits(const ParkedPoll& poll, pb::PollReply reply);
  bool IsServedByEvents(const pb::PollRequest& request) const;
  size_t EventsInReply(const pb::PollRequest& request) const;
  void FillEvents(const pb::PollRequest& request, pb::PollReply* reply);
  void Hear(const pb::PollRequest& request, Time now);
  void ForgetEvents(Time now);
  void GrantLease(const pb::PollRequest& request, Time verified_until, pb::PollReply* reply);
  void Remember(const pb::Event& event);
  uint64_t FloorLocked(Time now) const;
  void CollectWaiters(Time now, Over* over);
  void ArmTimer(Time at);
  Time NextDeadline(Time now) const;
  Time NextLeaseEnd(Time now) const;
  void OnTimer(Time at);
  void WakePolls();
  void WakePollsSoon();

  Executor* const executor_;
  const std::string server_;
  const uint64_t start_code_;
  const Options options_;
  ProjectionSource projection_source_;

  mutable std::mutex mutex_;
  uint64_t last_ = 0;             // number of the last event
  std::deque<KeptEvent> events_;  // the last ones, ending with number last_
  size_t event_bytes_ = 0;
  // The open regions and, for each index, whether it is complete, its layers and its range, as of
  // event last_.
  struct OpenRegion {
    pb::Event opened;
    std::map<uint32_t, pb::Event> complete;
  };
  std::map<uint64_t, OpenRegion> regions_;
  std::map<uint32_t, pb::Event> tables_;  // the last change of the schema of each
  std::map<uint64_t, Coordinator> coordinators_;
  std::map<uint64_t, ParkedPoll> parked_;    // one a coordinator
  std::multimap<uint64_t, Waiter> waiters_;  // by the number they wait for
  Time timer_at_ = Time::max();
  bool wake_posted_ = false;
  bool abandoned_ = false;
};

}  // namespace tamis
