// FilterFeed: the region server's end of routing. It sends changes of the filters to coordinators,
// grants coordinators leases, and decides when a put may be acknowledged.
//
// Everything that a coordinator must know is an event. Events are numbered in one sequence for the
// whole life of the server process; the start code identifies that life. Each poll of a coordinator
// says up to which number it has applied all events. The reply carries the events that follow, and
// a lease. While the lease lives, the server acknowledges no put whose events that coordinator has
// not applied, so the coordinator may trust its copy. The lease covers only the regions of the
// copy; therefore the closing of a region is an event, too.
//
// The server counts a lease from the moment when it sends the reply; the coordinator counts it from
// the moment when it sent the poll. A lease ends no later than the server's last proof that it owns
// its regions. A coordinator that polls but does not apply the events is granted no lease, so that
// it cannot hold up puts for ever. A coordinator that ends says so with a last poll, which ends its
// lease.
//
// An event is kept until every coordinator that has a lease, a parked poll, or has polled lately
// has applied it. Options::max_events and max_event_bytes bound the kept events; a coordinator that
// lacks a dropped event gets the whole state. A reply whose events exceed Options::reply_bytes is
// cut. A cut reply grants no lease, since puts whose events it lacks may have been acknowledged
// without this coordinator, and it carries no bits that are newer than its events. The whole state,
// which is small, is never cut. Bits that do not fit in one reply come in parts.
//
// Threads: safe. Callbacks run on the executor or on the caller's thread, never under a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/base/status.h"
#include "tamis/cluster/faults.h"
#include "tamis/cluster/region_server.h"
#include "tamis/feed/event_log.h"
#include "tamis/feed/feed_coordinators.h"
#include "tamis/feed/parked_polls.h"
#include "tamis/feed/waiting_puts.h"

namespace tamis {

class FilterFeed : public std::enable_shared_from_this<FilterFeed> {
 public:
  struct Options {
    Duration lease = std::chrono::seconds(1);
    // Added to the server's count of a lease, for clocks that run at different rates.
    Duration lease_margin = std::chrono::milliseconds(10);
    // Bounds of the kept events. A coordinator that lacks a dropped event gets the whole state.
    size_t max_events = 1 << 16;
    size_t max_event_bytes = 8 << 20;
    // No events are kept for a coordinator without a lease that has not polled for so long.
    Duration silence = std::chrono::seconds(10);
    size_t max_coordinators = 16;  // with a lease; the others search all regions of this server
    size_t max_listeners = 64;     // coordinators for which events are kept, with a lease or not
    size_t max_waiting = 10'000;   // waiting puts; see Crowded
    // Parked polls. A further poll is answered at once; its reply says that the coordinator should
    // poll again after `next_poll`.
    size_t max_parked = 64;
    Duration next_poll = std::chrono::milliseconds(50);
    size_t reply_bytes = 4 << 20;       // bytes of events in one reply; at least one event is sent
    size_t projection_bytes = 4 << 20;  // bytes of bits in one reply; at least one word is sent
    // True: the thread that calls WaitAcknowledged answers parked polls itself. If the coordinators
    // are in the same process, they then often apply the events before the thread would sleep.
    // False: a task of the executor answers the polls.
    bool answer_inline = false;
    Faults faults;
  };

  // Returns the present bits of a column, at most max_bytes but at least one word of them
  // (IndexFilter::Project); nullopt when the region does not have the bits, or no longer.
  using ProjectionSource =
      std::function<std::optional<pb::Projection>(const pb::ColumnId&, size_t max_bytes)>;

  FilterFeed(Executor* executor, std::string server, uint64_t start_code, Options options);
  void SetProjectionSource(ProjectionSource source);

  uint64_t start_code() const { return start_code_; }

  // Appends an event, sets its number, and returns the number. Throws std::bad_alloc, and then
  // appends nothing, when memory is short. FLIPS, LAYER_ADDED and RANGE_WIDENED do not wake parked
  // polls: WaitAcknowledged does. All other events wake them at once.
  uint64_t Append(pb::Event event);

  // Answers a poll: at once when it lacks events, requests bits or does not wait; else when an
  // event wakes it or its wait is over. A later poll of the same coordinator ends it with
  // kUnavailable. `verified_until` returns the time at which the server's last proof of ownership
  // ends. The poll of a coordinator that leaves ends its lease, and is answered at once.
  void Poll(const pb::PollRequest& request, std::function<Time()> verified_until,
            Callback<pb::PollReply> done);

  // Appends an event for a changed schema, or for a dropped table (version 0), unless an event of
  // this or a later version was appended before.
  void TellTable(uint32_t table_id, uint64_t schema_version);

  // Calls done with Ok once every coordinator with a live lease has applied event number `sequence`
  // and the time `not_before` is reached; with kDeadlineExceeded at the deadline. The caller must
  // not hold a lock that answering a poll needs.
  void WaitAcknowledged(uint64_t sequence, Time not_before, Time deadline, DoneCallback done);

  // True while so many puts wait that a further one should be refused before it does anything.
  bool Crowded() const;

  // The number up to which every coordinator with a live lease has applied the events.
  uint64_t AcknowledgedFloor() const;

  uint64_t Last() const;  // number of the last event

  size_t EventBytes() const;  // bytes of the events that are kept
  size_t EventCount() const;

  using Follower = FeedCoordinators::Follower;
  std::vector<Follower> Followers() const;

  // The server dies. Polls and waits that are under way are dropped without an answer; later polls
  // end with kUnavailable, later waits with kDeadlineExceeded (the outcome of the write is
  // unknown).
  void Abandon();

 private:
  uint64_t AppendLocked(pb::Event event);

  void Leave(uint64_t coordinator, const Callback<pb::PollReply>& done);

  void Answer(const ParkedPolls::Poll& poll) noexcept;
  void AnswerOrThrow(const ParkedPolls::Poll& poll);
  void AnswerWithBits(const ParkedPolls::Poll& poll, pb::PollReply reply);
  bool IsServedByEvents(const pb::PollRequest& request) const;
  void FillEvents(const pb::PollRequest& request, pb::PollReply* reply);
  void ForgetEvents(Time now);
  void GrantLease(const pb::PollRequest& request, Time verified_until, pb::PollReply* reply);
  void CollectPuts(Time now, WaitingPuts::Over* over);
  void ArmTimer(Time at);
  Time NextDeadline(Time now) const;
  void OnTimer(Time at);
  void WakePolls();
  void WakePollsSoon();

  Executor* const executor_;
  const std::string server_;
  const uint64_t start_code_;
  const Options options_;
  ProjectionSource projection_source_;

  mutable std::mutex mutex_;
  EventLog log_;
  FeedCoordinators coordinators_;
  ParkedPolls parked_;
  WaitingPuts puts_;
  Time timer_at_ = Time::max();
  bool wake_posted_ = false;
  bool abandoned_ = false;
};

}  // namespace tamis
