#include "tamis/feed/filter_feed.h"

#include <algorithm>
#include <new>
#include <utility>

#include "tamis/base/exception_status.h"

namespace tamis {

FilterFeed::FilterFeed(Executor* executor, std::string server, uint64_t start_code, Options options)
    : executor_(executor), server_(std::move(server)), start_code_(start_code), options_(options) {}

void FilterFeed::SetProjectionSource(ProjectionSource source) {
  projection_source_ = std::move(source);
}

uint64_t FilterFeed::Append(pb::Event event) {
  std::lock_guard lock(mutex_);
  return AppendLocked(std::move(event));
}

void FilterFeed::TellTable(uint32_t table_id, uint64_t schema_version) {
  std::lock_guard lock(mutex_);
  auto told = tables_.find(table_id);
  const uint64_t told_version = told == tables_.end() ? 0 : told->second.schema_version();
  if (schema_version == told_version || (schema_version != 0 && schema_version < told_version)) {
    return;
  }
  pb::Event event;
  event.set_kind(pb::Event::TABLE_CHANGED);
  event.set_table_id(table_id);
  event.set_schema_version(schema_version);
  AppendLocked(std::move(event));
}

uint64_t FilterFeed::AppendLocked(pb::Event event) {
  if (event.kind() == pb::Event::REGION_CLOSED && options_.faults.no_close_event) {
    regions_.erase(event.region_id());
    return last_;
  }
  // If memory runs out, nothing must be appended: the numbers of events follow from their count.
  event.set_sequence(last_ + 1);
  const bool somebody_will_wait = event.kind() == pb::Event::FLIPS ||
                                  event.kind() == pb::Event::LAYER_ADDED ||
                                  event.kind() == pb::Event::RANGE_WIDENED;
  const size_t bytes = event.ByteSizeLong();
  events_.push_back({std::move(event), bytes});
  try {
    Remember(events_.back().event);
  } catch (const std::bad_alloc&) {
    events_.pop_back();
    throw;
  }
  ++last_;
  event_bytes_ += bytes;
  ForgetEvents(executor_->Now());
  if (!somebody_will_wait) WakePollsSoon();
  return last_;
}

void FilterFeed::WakePollsSoon() {
  if (parked_.empty() || wake_posted_) return;
  try {
    executor_->Post([self = shared_from_this()] { self->WakePolls(); });
    wake_posted_ = true;
  } catch (const std::bad_alloc&) {
    // Memory is short: the polls are answered with the next event, or when their waits are over.
  }
}

// Drops the events that every listening coordinator has applied, and the oldest ones beyond the
// bounds.
void FilterFeed::ForgetEvents(Time now) {
  uint64_t applied = last_;
  for (const auto& [id, coordinator] : coordinators_) {
    const bool listens = coordinator.lease_until > now || parked_.contains(id) ||
                         now - coordinator.heard_at < options_.silence;
    if (listens) applied = std::min(applied, coordinator.acked);
  }
  while (!events_.empty() &&
         (events_.front().event.sequence() <= applied || events_.size() > options_.max_events ||
          event_bytes_ > options_.max_event_bytes)) {
    event_bytes_ -= events_.front().bytes;
    events_.pop_front();
  }
}

size_t FilterFeed::EventBytes() const {
  std::lock_guard lock(mutex_);
  return event_bytes_;
}

size_t FilterFeed::EventCount() const {
  std::lock_guard lock(mutex_);
  return events_.size();
}

std::vector<FilterFeed::Follower> FilterFeed::Followers() const {
  std::lock_guard lock(mutex_);
  const Time now = executor_->Now();
  std::vector<Follower> followers;
  for (const auto& [number, coordinator] : coordinators_) {
    followers.push_back({.coordinator = number,
                         .behind = last_ - coordinator.acked,
                         .lease_left = std::max(coordinator.lease_until - now, Duration(0))});
  }
  return followers;
}

// Keeps regions_ and tables_ the state that all events together describe. Changes nothing when it
// throws std::bad_alloc.
void FilterFeed::Remember(const pb::Event& event) {
  if (event.kind() == pb::Event::TABLE_CHANGED) {
    if (event.schema_version() == 0) {
      tables_.erase(event.table_id());
    } else {
      tables_.insert_or_assign(event.table_id(), pb::Event(event));
    }
    return;
  }
  if (event.kind() == pb::Event::REGION_OPENED) {
    regions_.insert_or_assign(event.region_id(), OpenRegion{.opened = event, .complete = {}});
    return;
  }
  auto region = regions_.find(event.region_id());
  // An event of an earlier opening says nothing about this one, as at a coordinator.
  if (region == regions_.end() || region->second.opened.epoch() != event.epoch()) return;
  auto& complete = region->second.complete;
  // The copy of the event's generation; nullptr: another one was published.
  const auto known = [&]() -> pb::Event* {
    const auto index = complete.find(event.index_id());
    const bool same = index != complete.end() && index->second.generation() == event.generation();
    return same ? &index->second : nullptr;
  };
  switch (event.kind()) {
    case pb::Event::REGION_CLOSED:
      regions_.erase(region);
      break;
    case pb::Event::INDEX_COMPLETE:
      complete.insert_or_assign(event.index_id(), pb::Event(event));
      break;
    case pb::Event::INDEX_DROPPED:
      complete.erase(event.index_id());
      break;
    case pb::Event::LAYER_ADDED:
      if (pb::Event* const copy = known()) copy->set_layers(event.layers());
      break;
    case pb::Event::RANGE_WIDENED:
      if (pb::Event* const copy = known()) {
        pb::Event widened = *copy;
        widened.set_min(event.min());
        widened.set_max(event.max());
        widened.set_has_range(event.has_range());
        *copy = std::move(widened);
      }
      break;
    default:
      break;
  }
}

void FilterFeed::Poll(const pb::PollRequest& request, std::function<Time()> verified_until,
                      Callback<pb::PollReply> done) {
  Over over;
  std::map<uint64_t, ParkedPoll>::node_type replaced;
  bool answer_now;
  bool crowded_out = false;
  bool abandoned = false;
  {
    std::lock_guard lock(mutex_);
    if (abandoned_) {
      abandoned = true;
      answer_now = false;
    } else {
      const Time now = executor_->Now();
      Hear(request, now);
      ForgetEvents(now);
      CollectWaiters(now, &over);
      // A poll of the same coordinator that is still parked is answered by this one.
      replaced = parked_.extract(request.coordinator());
      answer_now = request.start_code() != start_code_ || request.applied() != last_ ||
                   request.wanted_size() > 0 || request.wait_ns() == 0;
      crowded_out = !answer_now && parked_.size() >= options_.max_parked;
      answer_now |= crowded_out;
      if (!answer_now) {
        const Time until = executor_->Now() + SentDuration(request.wait_ns());
        try {
          ArmTimer(until);
          parked_.insert_or_assign(request.coordinator(),
                                   ParkedPoll{request, verified_until, done, until});
        } catch (const std::bad_alloc&) {
          answer_now = true;
        }
      }
    }
  }
  over.Call();
  if (abandoned) done(Unavailable("the region server is shut down"));
  if (replaced) {
    replaced.mapped().done(Unavailable("replaced by a later poll of the same coordinator"));
  }
  if (answer_now) Answer({request, verified_until, done, Time{}, crowded_out});
}

void FilterFeed::Hear(const pb::PollRequest& request, Time now) {
  auto found = coordinators_.find(request.coordinator());
  if (found == coordinators_.end()) {
    if (coordinators_.size() >= options_.max_listeners) {
      std::erase_if(coordinators_, [&](const auto& c) {
        return c.second.lease_until <= now && now - c.second.heard_at >= options_.lease;
      });
      if (coordinators_.size() >= options_.max_listeners) return;
    }
    found = coordinators_.emplace(request.coordinator(), Coordinator{}).first;
  }
  Coordinator& coordinator = found->second;
  coordinator.heard_at = now;
  if (request.start_code() != start_code_) return;
  coordinator.acked = std::max(coordinator.acked, std::min(request.applied(), last_));
  if (coordinator.acked >= coordinator.sent_to) coordinator.sent_to = 0;
}

void FilterFeed::Answer(const ParkedPoll& poll) noexcept {
  try {
    AnswerOrThrow(poll);
  } catch (...) {
    poll.done(StatusOfException());  // a lease that was granted with it runs out
  }
}

// The bits are read before the events: so the events reach the number of each projection, unless
// more events than fit in the reply came in between.
void FilterFeed::AnswerOrThrow(const ParkedPoll& poll) {
  pb::PollReply reply;
  bool bits = poll.request.wanted_size() > 0 && projection_source_;
  if (bits && !options_.faults.newer_projections) {
    std::lock_guard lock(mutex_);
    bits = IsServedByEvents(poll.request) && EventsInReply(poll.request) == events_.size();
  }
  if (!bits) return AnswerWithBits(poll, std::move(reply));
  size_t bytes_left = options_.projection_bytes;
  for (const pb::ColumnId& column : poll.request.wanted()) {
    std::optional<pb::Projection> projection = projection_source_(column, bytes_left);
    if (!projection.has_value()) continue;
    size_t bytes = 0;
    for (const auto& layer : projection->layers()) bytes += layer.size();
    bytes += projection->cells().size();
    *reply.add_projections() = std::move(*projection);
    if (bytes + sizeof(uint64_t) > bytes_left) break;
    bytes_left -= bytes;
  }
  if (options_.answer_inline) return AnswerWithBits(poll, std::move(reply));
  executor_->Post([self = shared_from_this(), poll, reply = std::move(reply)] {
    try {
      self->AnswerWithBits(poll, reply);
    } catch (...) {
      poll.done(StatusOfException());
    }
  });
}

void FilterFeed::AnswerWithBits(const ParkedPoll& poll, pb::PollReply reply) {
  reply.set_start_code(start_code_);
  reply.set_server(server_);
  if (poll.crowded_out) {
    reply.set_next_poll_ns(static_cast<uint64_t>(options_.next_poll.count()));
  }
  const Time sure_until = poll.verified_until();
  {
    std::lock_guard lock(mutex_);
    FillEvents(poll.request, &reply);
    if (reply.to() == last_ || options_.faults.lease_for_cut_reply) {
      GrantLease(poll.request, sure_until, &reply);
    }
  }
  if (!options_.faults.newer_projections) {
    auto* projections = reply.mutable_projections();
    projections->erase(std::remove_if(projections->begin(), projections->end(),
                                      [&](const pb::Projection& projection) {
                                        return projection.as_of() > reply.to();
                                      }),
                       projections->end());
  }
  poll.done(std::move(reply));
}

// The coordinator knows this life of the server, and the events that it lacks are kept.
bool FilterFeed::IsServedByEvents(const pb::PollRequest& request) const {
  return request.start_code() == start_code_ && request.applied() >= last_ - events_.size() &&
         request.applied() <= last_;
}

// The position in events_ after the last event that fits in the reply, which begins with the first
// event that the coordinator lacks.
size_t FilterFeed::EventsInReply(const pb::PollRequest& request) const {
  const size_t first = request.applied() - (last_ - events_.size());
  size_t bytes = 0;
  size_t end = first;
  while (end < events_.size() &&
         (end == first || bytes + events_[end].bytes <= options_.reply_bytes)) {
    bytes += events_[end++].bytes;
  }
  return end;
}

void FilterFeed::FillEvents(const pb::PollRequest& request, pb::PollReply* reply) {
  reply->set_full(!IsServedByEvents(request));
  if (!reply->full()) {
    const uint64_t before = last_ - events_.size();  // number of the event before events_
    const size_t end = EventsInReply(request);
    for (size_t i = request.applied() - before; i < end; ++i) {
      *reply->add_events() = events_[i].event;
    }
    reply->set_from(request.applied());
    reply->set_to(before + end);
    return;
  }
  reply->set_from(last_);
  reply->set_to(last_);
  for (const auto& [id, changed] : tables_) *reply->add_events() = changed;
  for (const auto& [id, region] : regions_) {
    *reply->add_events() = region.opened;
    for (const auto& [index_id, complete] : region.complete) *reply->add_events() = complete;
  }
}

void FilterFeed::GrantLease(const pb::PollRequest& request, Time sure_until, pb::PollReply* reply) {
  const Time now = executor_->Now();
  auto found = coordinators_.find(request.coordinator());
  if (found == coordinators_.end()) return;
  Coordinator& coordinator = found->second;
  const auto leased = std::ranges::count_if(
      coordinators_, [now](const auto& c) { return c.second.lease_until > now; });
  if (coordinator.lease_until <= now && static_cast<size_t>(leased) >= options_.max_coordinators) {
    return;
  }
  if (coordinator.sent_to != 0 && now - coordinator.sent_at > options_.lease) return;  // lags
  if (coordinator.sent_to == 0 && last_ > coordinator.acked) {
    coordinator.sent_to = last_;
    coordinator.sent_at = now;
  }
  Duration lease = options_.lease;
  if (!options_.faults.lease_beyond_proof) lease = std::min(lease, sure_until - now);
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
          "it may have been carried out");
    } else if (acknowledged && now >= not_before) {
      // Nothing to wait for.
    } else {
      ArmTimer(std::min(deadline, not_before > now ? not_before : NextLeaseEnd(now)));
      waiters_.emplace(sequence, Waiter{not_before, deadline, std::move(done)});
      if (!options_.answer_inline) WakePollsSoon();
      waits = true;
    }
  }
  if (!waits) {
    done(status);  // NOLINT(bugprone-use-after-move): moved only where it waits
  } else if (options_.answer_inline) {
    WakePolls();
  }
}

void FilterFeed::Over::Call() {
  for (auto& [sequence, waiter] : acknowledged) waiter.done(Status::Ok());
  for (auto& [sequence, waiter] : late) {
    waiter.done(DeadlineExceeded(
        "coordinators did not acknowledge in time; the write may have been carried out"));
  }
}

void FilterFeed::CollectWaiters(Time now, Over* over) {
  if (waiters_.empty()) return;
  const uint64_t floor = options_.faults.no_lease_wait ? last_ : FloorLocked(now);
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    const auto next = std::next(it);
    const Waiter& waiter = it->second;
    if (it->first <= floor && now >= waiter.not_before) {
      over->acknowledged.insert(waiters_.extract(it));
    } else if (now >= waiter.deadline) {
      over->late.insert(waiters_.extract(it));
    }
    it = next;
  }
}

// Ensures that OnTimer runs at `at` or before. Only the timer that was armed last has an effect: it
// arms the next one. If this throws std::bad_alloc, the timer before keeps its effect.
void FilterFeed::ArmTimer(Time at) {
  if (at >= timer_at_) return;  // Time::max() included
  executor_->PostAfter(std::max(at - executor_->Now(), Duration(0)),
                       [self = shared_from_this(), at] { self->OnTimer(at); });
  timer_at_ = at;
}

// The earliest time at which a parked poll or a wait ends, or a lease that puts wait for.
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
  Over over;
  std::map<uint64_t, ParkedPoll> due;
  {
    std::lock_guard lock(mutex_);
    if (abandoned_) return;
    if (at != timer_at_) return;  // an earlier timer was armed since; it has armed the next one
    timer_at_ = Time::max();
    const Time now = executor_->Now();
    CollectWaiters(now, &over);
    for (auto it = parked_.begin(); it != parked_.end();) {
      const auto next = std::next(it);
      if (it->second.until <= now) due.insert(parked_.extract(it));
      it = next;
    }
    try {
      ArmTimer(NextDeadline(now));
    } catch (const std::bad_alloc&) {
      // The next poll, or the next write that waits, arms it.
    }
  }
  over.Call();
  for (const auto& [id, poll] : due) Answer(poll);
}

void FilterFeed::WakePolls() {
  std::map<uint64_t, ParkedPoll> due;
  {
    std::lock_guard lock(mutex_);
    wake_posted_ = false;
    for (auto it = parked_.begin(); it != parked_.end();) {
      const auto next = std::next(it);
      if (it->second.request.applied() != last_) due.insert(parked_.extract(it));
      it = next;
    }
  }
  for (const auto& [id, poll] : due) Answer(poll);
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
