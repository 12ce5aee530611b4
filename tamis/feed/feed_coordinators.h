// FeedCoordinators: the coordinators that poll a feed, which events each has applied, and their
// leases.
//
// While a lease lives, no put is acknowledged whose events its coordinator has not applied (Floor).
// A coordinator that polls but does not apply the events is granted no lease, so that it cannot
// hold up puts for ever.
//
// The jar has the same class.
//
// Threads: exclusive access.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tamis/base/executor.h"

namespace tamis {

class FeedCoordinators {
 public:
  struct Options {
    Duration lease{};
    Duration lease_margin{};  // added to the server's count of a lease
    // No events are kept for a coordinator without a lease that has not polled for so long.
    Duration silence{};
    size_t max_coordinators = 0;      // with a lease
    size_t max_listeners = 0;         // with a lease or not
    bool lease_beyond_proof = false;  // a fault, for tests
  };
  explicit FeedCoordinators(const Options& options) : options_(options) {}

  // A coordinator polls. `applied`: the number up to which it has applied the events; nullopt: it
  // knows no events of this life of the server. One for which there is no room is not noted.
  void Hear(uint64_t number, std::optional<uint64_t> applied, Time now);

  // The coordinator says that it uses its lease no longer.
  void Leave(uint64_t number) { coordinators_.erase(number); }

  // The number up to which every coordinator that has a lease, a parked poll, or has polled lately
  // has applied the events; `last`: none lacks any.
  template <class IsParked>
  uint64_t AppliedByAll(uint64_t last, Time now, IsParked&& is_parked) const;
  // The same of those with a live lease.
  uint64_t Floor(uint64_t last, Time now) const;

  // Grants a lease with a reply that holds all events up to `last`; it ends no later than
  // `sure_until`. Returns how long the coordinator may use it; 0: none is granted.
  Duration GrantLease(uint64_t number, uint64_t last, Time now, Time sure_until);
  // When the first live lease ends; Time::max(): there is none.
  Time NextLeaseEnd(Time now) const;

  // A coordinator that polls.
  struct Follower {
    uint64_t coordinator = 0;
    uint64_t behind = 0;  // events that it has not acknowledged
    Duration lease_left{};
  };
  std::vector<Follower> Followers(uint64_t last, Time now) const;

 private:
  struct Coordinator {
    uint64_t acked = 0;
    Time lease_until{};
    Time heard_at{};
    // The oldest reply that the coordinator has not applied yet: the number of its last event (0:
    // there is no such reply), and when it was sent.
    uint64_t sent_to = 0;
    Time sent_at{};
  };

  const Options options_;
  std::map<uint64_t, Coordinator> coordinators_;
};

template <class IsParked>
uint64_t FeedCoordinators::AppliedByAll(uint64_t last, Time now, IsParked&& is_parked) const {
  uint64_t applied = last;
  for (const auto& [number, coordinator] : coordinators_) {
    const bool listens = coordinator.lease_until > now || is_parked(number) ||
                         now - coordinator.heard_at < options_.silence;
    if (listens) applied = std::min(applied, coordinator.acked);
  }
  return applied;
}

}  // namespace tamis
