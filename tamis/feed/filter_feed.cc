#include "tamis/feed/filter_feed.h"

#include <algorithm>
#include <new>
#include <utility>

#include "tamis/base/exception_status.h"

namespace tamis {

FilterFeed::FilterFeed(Executor* executor, std::string server, uint64_t start_code, Options options)
    : executor_(executor),
      server_(std::move(server)),
      start_code_(start_code),
      options_(options),
      log_({.max_events = options.max_events,
            .max_event_bytes = options.max_event_bytes,
            .reply_bytes = options.reply_bytes}),
      coordinators_({.lease = options.lease,
                     .lease_margin = options.lease_margin,
                     .silence = options.silence,
                     .max_coordinators = options.max_coordinators,
                     .max_listeners = options.max_listeners,
                     .lease_beyond_proof = options.faults.lease_beyond_proof}) {}

void FilterFeed::SetProjectionSource(ProjectionSource source) {
  projection_source_ = std::move(source);
}

uint64_t FilterFeed::Append(pb::Event event) {
  std::lock_guard lock(mutex_);
  return AppendLocked(std::move(event));
}

void FilterFeed::TellTable(uint32_t table_id, uint64_t schema_version) {
  std::lock_guard lock(mutex_);
  const uint64_t told_version = log_.SchemaVersion(table_id);
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
    log_.CloseUntold(event.region_id());
    return log_.last();
  }
  const bool somebody_will_wait = event.kind() == pb::Event::FLIPS ||
                                  event.kind() == pb::Event::LAYER_ADDED ||
                                  event.kind() == pb::Event::RANGE_WIDENED;
  const uint64_t sequence = log_.Append(std::move(event));
  ForgetEvents(executor_->Now());
  if (!somebody_will_wait) WakePollsSoon();
  return sequence;
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
  log_.ForgetUpTo(coordinators_.AppliedByAll(
      log_.last(), now, [this](uint64_t coordinator) { return parked_.Has(coordinator); }));
}

size_t FilterFeed::EventBytes() const {
  std::lock_guard lock(mutex_);
  return log_.bytes();
}

size_t FilterFeed::EventCount() const {
  std::lock_guard lock(mutex_);
  return log_.size();
}

std::vector<FilterFeed::Follower> FilterFeed::Followers() const {
  std::lock_guard lock(mutex_);
  return coordinators_.Followers(log_.last(), executor_->Now());
}

void FilterFeed::Poll(const pb::PollRequest& request, std::function<Time()> verified_until,
                      Callback<pb::PollReply> done) {
  if (request.leaves()) return Leave(request.coordinator(), done);
  WaitingPuts::Over over;
  ParkedPolls::Polls::node_type replaced;
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
      std::optional<uint64_t> applied;
      if (request.start_code() == start_code_) applied = std::min(request.applied(), log_.last());
      coordinators_.Hear(request.coordinator(), applied, now);
      ForgetEvents(now);
      CollectPuts(now, &over);
      // A poll of the same coordinator that is still parked is answered by this one.
      replaced = parked_.Take(request.coordinator());
      answer_now = request.start_code() != start_code_ || request.applied() != log_.last() ||
                   request.wanted_size() > 0 || request.wait_ns() == 0;
      crowded_out = !answer_now && parked_.size() >= options_.max_parked;
      answer_now |= crowded_out;
      if (!answer_now) {
        const Time until = executor_->Now() + SentDuration(request.wait_ns());
        try {
          ArmTimer(until);
          parked_.Park({request, verified_until, done, until});
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

void FilterFeed::Leave(uint64_t coordinator, const Callback<pb::PollReply>& done) {
  WaitingPuts::Over over;
  ParkedPolls::Polls::node_type parked;
  {
    std::lock_guard lock(mutex_);
    const Time now = executor_->Now();
    coordinators_.Leave(coordinator);
    parked = parked_.Take(coordinator);
    ForgetEvents(now);
    CollectPuts(now, &over);
  }
  over.Call();
  if (parked) parked.mapped().done(Unavailable("the coordinator has left"));
  pb::PollReply reply;
  reply.set_start_code(start_code_);
  reply.set_server(server_);
  done(std::move(reply));
}

void FilterFeed::Answer(const ParkedPolls::Poll& poll) noexcept {
  try {
    AnswerOrThrow(poll);
  } catch (...) {
    poll.done(StatusOfException());  // a lease that was granted with it runs out
  }
}

// The bits are read before the events: so the events reach the number of each projection, unless
// more events than fit in the reply came in between.
void FilterFeed::AnswerOrThrow(const ParkedPolls::Poll& poll) {
  pb::PollReply reply;
  bool bits = poll.request.wanted_size() > 0 && projection_source_;
  if (bits && !options_.faults.newer_projections) {
    std::lock_guard lock(mutex_);
    bits = IsServedByEvents(poll.request) && log_.EndOfReply(poll.request.applied()) == log_.last();
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

void FilterFeed::AnswerWithBits(const ParkedPolls::Poll& poll, pb::PollReply reply) {
  reply.set_start_code(start_code_);
  reply.set_server(server_);
  if (poll.crowded_out) {
    reply.set_next_poll_ns(static_cast<uint64_t>(options_.next_poll.count()));
  }
  const Time sure_until = poll.verified_until();
  {
    std::lock_guard lock(mutex_);
    FillEvents(poll.request, &reply);
    if (reply.to() == log_.last() || options_.faults.lease_for_cut_reply) {
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
  return request.start_code() == start_code_ && log_.KeepsAfter(request.applied());
}

void FilterFeed::FillEvents(const pb::PollRequest& request, pb::PollReply* reply) {
  reply->set_full(!IsServedByEvents(request));
  if (reply->full()) {
    log_.AddState(reply);
  } else {
    log_.AddEvents(request.applied(), reply);
  }
}

void FilterFeed::GrantLease(const pb::PollRequest& request, Time sure_until, pb::PollReply* reply) {
  const Duration lease =
      coordinators_.GrantLease(request.coordinator(), log_.last(), executor_->Now(), sure_until);
  if (lease > Duration(0)) reply->set_lease_ns(static_cast<uint64_t>(lease.count()));
}

uint64_t FilterFeed::AcknowledgedFloor() const {
  std::lock_guard lock(mutex_);
  return coordinators_.Floor(log_.last(), executor_->Now());
}

uint64_t FilterFeed::Last() const {
  std::lock_guard lock(mutex_);
  return log_.last();
}

bool FilterFeed::Crowded() const {
  std::lock_guard lock(mutex_);
  return puts_.size() >= options_.max_waiting;
}

void FilterFeed::WaitAcknowledged(uint64_t sequence, Time not_before, Time deadline,
                                  DoneCallback done) {
  Status status;
  bool waits = false;
  {
    std::lock_guard lock(mutex_);
    const Time now = executor_->Now();
    const bool acknowledged =
        options_.faults.no_lease_wait || sequence <= coordinators_.Floor(log_.last(), now);
    if (abandoned_) {
      status = DeadlineExceeded(
          "the region server shut down while the write waited for coordinators; "
          "it may have been carried out");
    } else if (acknowledged && now >= not_before) {
      // Nothing to wait for.
    } else {
      ArmTimer(std::min(deadline, not_before > now ? not_before : coordinators_.NextLeaseEnd(now)));
      puts_.Add(sequence, {not_before, deadline, std::move(done)});
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

void FilterFeed::CollectPuts(Time now, WaitingPuts::Over* over) {
  if (puts_.empty()) return;
  const uint64_t last = log_.last();
  puts_.Collect(options_.faults.no_lease_wait ? last : coordinators_.Floor(last, now), now, over);
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
  const Time next = parked_.NextEnd();
  if (puts_.empty()) return next;
  return std::min({next, puts_.NextEnd(now), coordinators_.NextLeaseEnd(now)});
}

void FilterFeed::OnTimer(Time at) {
  WaitingPuts::Over over;
  ParkedPolls::Polls due;
  {
    std::lock_guard lock(mutex_);
    if (abandoned_) return;
    if (at != timer_at_) return;  // an earlier timer was armed since; it has armed the next one
    timer_at_ = Time::max();
    const Time now = executor_->Now();
    CollectPuts(now, &over);
    due = parked_.TakeDue(now);
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
  ParkedPolls::Polls due;
  {
    std::lock_guard lock(mutex_);
    wake_posted_ = false;
    due = parked_.TakeBehind(log_.last());
  }
  for (const auto& [id, poll] : due) Answer(poll);
}

void FilterFeed::Abandon() {
  ParkedPolls::Polls polls;  // destroyed without the lock
  WaitingPuts::Puts puts;
  std::lock_guard lock(mutex_);
  abandoned_ = true;
  polls = parked_.TakeAll();
  puts = puts_.TakeAll();
}

}  // namespace tamis
