#include "tamis/routing/filter_feed.h"

#include <algorithm>

namespace tamis {

FilterFeed::FilterFeed(Executor* executor, std::string server, uint64_t start_code, Options options)
    : executor_(executor), server_(std::move(server)), start_code_(start_code), options_(options) {}

void FilterFeed::SetProjectionSource(ProjectionSource source) {
  projection_source_ = std::move(source);
}

uint64_t FilterFeed::Append(pb::Event event) {
  std::lock_guard lock(mutex_);
  if (event.kind() == pb::Event::REGION_CLOSED && options_.faults.no_close_event) {
    regions_.erase(event.region_id());
    return last_;
  }
  event.set_sequence(++last_);
  Remember(event);
  const bool somebody_will_wait = event.kind() == pb::Event::FLIPS ||
                                  event.kind() == pb::Event::LAYER_ADDED ||
                                  event.kind() == pb::Event::RANGE_WIDENED;
  events_.push_back(std::move(event));
  while (events_.size() > options_.max_events) events_.pop_front();
  if (!somebody_will_wait) WakePollsSoon();
  return last_;
}

void FilterFeed::WakePollsSoon() {
  if (parked_.empty() || wake_posted_) return;
  wake_posted_ = true;
  executor_->Post([self = shared_from_this()] { self->WakePolls(); });
}

// Keeps regions_ the state that all events together describe.
void FilterFeed::Remember(const pb::Event& event) {
  if (event.kind() == pb::Event::REGION_OPENED) {
    regions_[event.region_id()] = {.opened = event, .complete = {}};
    return;
  }
  auto region = regions_.find(event.region_id());
  if (region == regions_.end()) return;
  auto& complete = region->second.complete;
  switch (event.kind()) {
    case pb::Event::REGION_CLOSED:
      regions_.erase(region);
      break;
    case pb::Event::INDEX_COMPLETE:
      complete[event.index_id()] = event;
      break;
    case pb::Event::INDEX_DROPPED:
      complete.erase(event.index_id());
      break;
    case pb::Event::LAYER_ADDED:
      if (auto index = complete.find(event.index_id()); index != complete.end()) {
        index->second.set_layers(event.layers());
      }
      break;
    case pb::Event::RANGE_WIDENED:
      if (auto index = complete.find(event.index_id()); index != complete.end()) {
        index->second.set_min(event.min());
        index->second.set_max(event.max());
        index->second.set_has_range(true);
      }
      break;
    default:
      break;
  }
}

void FilterFeed::Poll(const pb::PollRequest& request, std::function<Time()> verified_until,
                      Callback<pb::PollReply> done) {
  Calls calls;
  bool answer_now;
  {
    std::lock_guard lock(mutex_);
    if (abandoned_) {
      calls.push_back([done] { done(Unavailable("the region server is shut down")); });
      answer_now = false;
    } else {
      Acknowledge(request);
      CollectWaiters(executor_->Now(), &calls);
      // A poll of the same coordinator that is still parked is answered by this one.
      if (auto old = parked_.extract(request.coordinator())) {
        calls.push_back([done = std::move(old.mapped().done)] {
          done(Unavailable("replaced by a later poll of the same coordinator"));
        });
      }
      answer_now = request.start_code() != start_code_ || request.applied() != last_ ||
                   request.wanted_size() > 0 || request.wait_ns() == 0;
      if (!answer_now) {
        const Time until = executor_->Now() + Duration(request.wait_ns());
        parked_[request.coordinator()] = {request, verified_until, done, until};
        ArmTimer(until);
      }
    }
  }
  for (auto& call : calls) call();
  if (answer_now) Answer(request, verified_until, done);
}

void FilterFeed::Acknowledge(const pb::PollRequest& request) {
  if (request.start_code() != start_code_) return;
  auto found = coordinators_.find(request.coordinator());
  if (found == coordinators_.end()) return;
  Coordinator& coordinator = found->second;
  coordinator.acked = std::max(coordinator.acked, std::min(request.applied(), last_));
  if (coordinator.acked >= coordinator.sent_to) coordinator.sent_to = 0;
}

void FilterFeed::Answer(const pb::PollRequest& request, const std::function<Time()>& verified_until,
                        const Callback<pb::PollReply>& done) {
  pb::PollReply reply;
  reply.set_start_code(start_code_);
  reply.set_server(server_);
  // Bits first, events after: every projection is as of a number that the events reach.
  size_t bytes = 0;
  for (const pb::ColumnId& column : request.wanted()) {
    if (bytes > options_.projection_bytes) break;
    std::optional<pb::Projection> projection =
        projection_source_ ? projection_source_(column) : std::nullopt;
    if (!projection.has_value()) continue;
    for (const auto& layer : projection->layers()) bytes += layer.size();
    *reply.add_projections() = std::move(*projection);
  }
  const Time sure_until = verified_until();
  {
    std::lock_guard lock(mutex_);
    FillEvents(request, &reply);
    GrantLease(request, sure_until, &reply);
  }
  done(std::move(reply));
}

void FilterFeed::FillEvents(const pb::PollRequest& request, pb::PollReply* reply) {
  const uint64_t oldest_missing = last_ - events_.size();
  const bool full = request.start_code() != start_code_ || request.applied() < oldest_missing ||
                    request.applied() > last_;
  reply->set_full(full);
  reply->set_to(last_);
  if (!full) {
    reply->set_from(request.applied());
    for (size_t i = request.applied() - oldest_missing; i < events_.size(); ++i) {
      *reply->add_events() = events_[i];
    }
    return;
  }
  reply->set_from(last_);
  for (const auto& [id, region] : regions_) {
    *reply->add_events() = region.opened;
    for (const auto& [index_id, complete] : region.complete) *reply->add_events() = complete;
  }
}

void FilterFeed::GrantLease(const pb::PollRequest& request, Time sure_until, pb::PollReply* reply) {
  const Time now = executor_->Now();
  auto found = coordinators_.find(request.coordinator());
  if (found == coordinators_.end()) {
    std::erase_if(coordinators_, [now](const auto& c) { return c.second.lease_until <= now; });
    if (coordinators_.size() >= options_.max_coordinators) return;
    found = coordinators_.emplace(request.coordinator(), Coordinator{}).first;
    if (request.start_code() == start_code_)
      found->second.acked = std::min(request.applied(), last_);
  }
  Coordinator& coordinator = found->second;
  if (coordinator.sent_to != 0 && now - coordinator.sent_at > options_.lease) return;  // lags
  if (coordinator.sent_to == 0 && last_ > coordinator.acked) {
    coordinator.sent_to = last_;
    coordinator.sent_at = now;
  }
  Duration lease = options_.lease;
  if (!options_.faults.unverified_membership) lease = std::min(lease, sure_until - now);
  if (lease <= Duration(0)) return;
  coordinator.lease_until = std::max(coordinator.lease_until, now + lease + options_.lease_margin);
  reply->set_lease_ns(static_cast<uint64_t>(lease.count()));
}

uint64_t FilterFeed::FloorLocked(Time now) const {
  uint64_t floor = last_;
  for (const auto& [id, coordinator] : coordinators_) {
    if (coordinator.lease_until > now) floor = std::min(floor, coordinator.acked);
  }
  return floor;
}

uint64_t FilterFeed::AcknowledgedFloor() const {
  std::lock_guard lock(mutex_);
  return FloorLocked(executor_->Now());
}

uint64_t FilterFeed::Last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

bool FilterFeed::Crowded() const {
  std::lock_guard lock(mutex_);
  return waiters_.size() >= options_.max_waiting;
}

void FilterFeed::WaitAcknowledged(uint64_t sequence, Time not_before, Time deadline,
                                  DoneCallback done) {
  Status status;
  bool waits = false;
  {
    std::lock_guard lock(mutex_);
    const Time now = executor_->Now();
    const bool acknowledged = options_.faults.no_lease_wait || sequence <= FloorLocked(now);
    if (abandoned_) {
      status = DeadlineExceeded(
          "the region server shut down while the write waited for coordinators; "
          "it may stand");
    } else if (acknowledged && now >= not_before) {
      // Nothing to wait for.
    } else {
      waiters_.emplace(sequence, Waiter{not_before, deadline, std::move(done)});
      ArmTimer(std::min(deadline, not_before > now ? not_before : NextLeaseEnd(now)));
      if (!options_.answer_inline) WakePollsSoon();
      waits = true;
    }
  }
  if (!waits) {
    done(status);
  } else if (options_.answer_inline) {
    WakePolls();
  }
}

void FilterFeed::CollectWaiters(Time now, Calls* calls) {
  if (waiters_.empty()) return;
  const uint64_t floor = options_.faults.no_lease_wait ? last_ : FloorLocked(now);
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    Waiter& waiter = it->second;
    if (it->first <= floor && now >= waiter.not_before) {
      calls->push_back([done = std::move(waiter.done)] { done(Status::Ok()); });
    } else if (now >= waiter.deadline) {
      calls->push_back([done = std::move(waiter.done)] {
        done(DeadlineExceeded("coordinators did not acknowledge in time; the write may stand"));
      });
    } else {
      ++it;
      continue;
    }
    it = waiters_.erase(it);
  }
}

// Ensures that OnTimer runs at `at` or before. Only the one armed last counts: it arms the next.
void FilterFeed::ArmTimer(Time at) {
  if (at >= timer_at_) return;  // Time::max() included
  timer_at_ = at;
  executor_->PostAfter(std::max(at - executor_->Now(), Duration(0)),
                       [self = shared_from_this(), at] { self->OnTimer(at); });
}

// The first moment at which a poll, a wait or a lease that holds waits back can end.
Time FilterFeed::NextDeadline(Time now) const {
  Time next = Time::max();
  for (const auto& [id, parked] : parked_) next = std::min(next, parked.until);
  for (const auto& [sequence, waiter] : waiters_) {
    next = std::min(next, waiter.deadline);
    if (waiter.not_before > now) next = std::min(next, waiter.not_before);
  }
  return waiters_.empty() ? next : std::min(next, NextLeaseEnd(now));
}

Time FilterFeed::NextLeaseEnd(Time now) const {
  Time next = Time::max();
  for (const auto& [id, coordinator] : coordinators_) {
    if (coordinator.lease_until > now) next = std::min(next, coordinator.lease_until);
  }
  return next;
}

void FilterFeed::OnTimer(Time at) {
  Calls calls;
  std::vector<ParkedPoll> due;
  {
    std::lock_guard lock(mutex_);
    if (abandoned_) return;
    if (at != timer_at_) return;  // an earlier one was armed since, which armed what follows
    timer_at_ = Time::max();
    const Time now = executor_->Now();
    CollectWaiters(now, &calls);
    for (auto it = parked_.begin(); it != parked_.end();) {
      if (it->second.until <= now) {
        due.push_back(std::move(it->second));
        it = parked_.erase(it);
      } else {
        ++it;
      }
    }
    ArmTimer(NextDeadline(now));
  }
  for (auto& call : calls) call();
  for (auto& poll : due) Answer(poll.request, poll.verified_until, poll.done);
}

void FilterFeed::WakePolls() {
  std::map<uint64_t, ParkedPoll> due;
  {
    std::lock_guard lock(mutex_);
    wake_posted_ = false;
    due.swap(parked_);
  }
  for (auto& [id, poll] : due) Answer(poll.request, poll.verified_until, poll.done);
}

void FilterFeed::Abandon() {
  std::map<uint64_t, ParkedPoll> polls;  // destroyed without the lock
  std::multimap<uint64_t, Waiter> waiters;
  std::lock_guard lock(mutex_);
  abandoned_ = true;
  polls.swap(parked_);
  waiters.swap(waiters_);
}

}  // namespace tamis
