#include "tamis/feed/feed_coordinators.h"

namespace tamis {

void FeedCoordinators::Hear(uint64_t number, std::optional<uint64_t> applied, Time now) {
  auto found = coordinators_.find(number);
  if (found == coordinators_.end()) {
    if (coordinators_.size() >= options_.max_listeners) {
      std::erase_if(coordinators_, [&](const auto& c) {
        return c.second.lease_until <= now && now - c.second.heard_at >= options_.lease;
      });
      if (coordinators_.size() >= options_.max_listeners) return;
    }
    found = coordinators_.emplace(number, Coordinator{}).first;
  }
  Coordinator& coordinator = found->second;
  coordinator.heard_at = now;
  if (!applied.has_value()) return;
  coordinator.acked = std::max(coordinator.acked, *applied);
  if (coordinator.acked >= coordinator.sent_to) coordinator.sent_to = 0;
}

uint64_t FeedCoordinators::Floor(uint64_t last, Time now) const {
  uint64_t floor = last;
  for (const auto& [id, coordinator] : coordinators_) {
    if (coordinator.lease_until > now) floor = std::min(floor, coordinator.acked);
  }
  return floor;
}

Duration FeedCoordinators::GrantLease(uint64_t number, uint64_t last, Time now, Time sure_until) {
  auto found = coordinators_.find(number);
  if (found == coordinators_.end()) return Duration(0);
  Coordinator& coordinator = found->second;
  const auto leased = std::ranges::count_if(
      coordinators_, [now](const auto& c) { return c.second.lease_until > now; });
  if (coordinator.lease_until <= now && static_cast<size_t>(leased) >= options_.max_coordinators) {
    return Duration(0);
  }
  if (coordinator.sent_to != 0 && now - coordinator.sent_at > options_.lease) {
    return Duration(0);  // lags
  }
  if (coordinator.sent_to == 0 && last > coordinator.acked) {
    coordinator.sent_to = last;
    coordinator.sent_at = now;
  }
  Duration lease = options_.lease;
  if (!options_.lease_beyond_proof) lease = std::min(lease, sure_until - now);
  if (lease <= Duration(0)) return Duration(0);
  coordinator.lease_until = std::max(coordinator.lease_until, now + lease + options_.lease_margin);
  return lease;
}

Time FeedCoordinators::NextLeaseEnd(Time now) const {
  Time next = Time::max();
  for (const auto& [id, coordinator] : coordinators_) {
    if (coordinator.lease_until > now) next = std::min(next, coordinator.lease_until);
  }
  return next;
}

std::vector<FeedCoordinators::Follower> FeedCoordinators::Followers(uint64_t last, Time now) const {
  std::vector<Follower> followers;
  for (const auto& [number, coordinator] : coordinators_) {
    followers.push_back({.coordinator = number,
                         .behind = last - coordinator.acked,
                         .lease_left = std::max(coordinator.lease_until - now, Duration(0))});
  }
  return followers;
}

}  // namespace tamis
